import { useClient, useStatus } from "@parley/client/react";
import { createContext, use, useCallback, useEffect, useState } from "react";

interface OperatorState {
  /** Null until the server has answered. */
  operates: boolean | null;
  /** The person was an operator when this page was loaded, and is not any more. */
  wasOperator: boolean;
  /** Why the server could not be asked; null if it could. */
  problem: unknown;
}

export interface Operator extends OperatorState {
  /** Asks the server again, as after a call that it refused. */
  check: () => void;
}

const unknown: OperatorState = { operates: null, wasOperator: false, problem: null };

/** Whether the person is an operator; set inside of the shell. */
export const OperatorContext = createContext<Operator>({ ...unknown, check: () => {} });

export const useOperator = () => use(OperatorContext);

/** Asks the server whether the person is an operator, again after each connection. */
export function useOperatorCheck(): Operator {
  const client = useClient();
  const isOnline = useStatus() === "online";
  const [state, setState] = useState(unknown);
  const check = useCallback(() => {
    client.getMe().then(
      ({ is_operator: operates = false }) =>
        setState(({ operates: before, wasOperator }) => ({
          operates,
          wasOperator: !operates && (before === true || wasOperator),
          problem: null,
        })),
      (problem: unknown) => setState((before) => ({ ...before, problem })),
    );
  }, [client]);
  useEffect(() => {
    if (isOnline) check();
  }, [isOnline, check]);
  return { ...state, check };
}
