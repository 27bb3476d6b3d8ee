import { useClient, useStatus } from "@parley/client/react";
import type { Account, Policy } from "@parley/protocol";
import { UNRESTRICTED } from "@parley/protocol/records/unrestricted";
import { createContext, use, useCallback, useEffect, useState } from "react";

interface OperatorState {
  /** Null until the server has answered. */
  operates: boolean | null;
  /** The person was an operator when this page was loaded, and is not any more. */
  wasOperator: boolean;
  /** What the person may do, as last known. */
  policy: Policy;
  /** Why the server could not be asked; null if it could. */
  problem: unknown;
}

export interface Operator extends OperatorState {
  /** Asks the server again, as after a call that it refused. */
  check: () => void;
}

const unknown: OperatorState = {
  operates: null,
  wasOperator: false,
  policy: UNRESTRICTED,
  problem: null,
};

/** Whether the person is an operator; set inside of the shell. */
export const OperatorContext = createContext<Operator>({ ...unknown, check: () => {} });

export const useOperator = () => use(OperatorContext);

/**
 * Asks the server whether the person is an operator and what they may do, again after each connection
 * and when the own account has changed.
 */
export function useOperatorCheck({ username }: Account): Operator {
  const client = useClient();
  const isOnline = useStatus() === "online";
  const [state, setState] = useState(unknown);
  const check = useCallback(() => {
    client.getMe().then(
      ({ is_operator: operates = false, policy = UNRESTRICTED }) =>
        setState(({ operates: before, wasOperator }) => ({
          operates,
          wasOperator: !operates && (before === true || wasOperator),
          policy,
          problem: null,
        })),
      (problem: unknown) => setState((before) => ({ ...before, problem })),
    );
  }, [client]);
  useEffect(() => {
    if (isOnline) check();
  }, [isOnline, check]);
  useEffect(
    () =>
      client.on("events.accountUpdated", ({ params }) => {
        if (params.username === username) check();
      }),
    [client, username, check],
  );
  return { ...state, check };
}
