import type { Access, Operation } from "@parley/protocol";
import type { z } from "zod";
import type {
  AgentCaller,
  AnyCaller,
  Caller,
  Participant,
  ServiceCaller,
} from "../security/caller.ts";
import { createInputParser, fieldsOf, type InputParser, type KnownFields } from "./input.ts";
import type { Context, Needs } from "./needs.ts";

/** An operation of the contract with its handler. */
export interface Bound {
  readonly contract: Operation;
  readonly handle: (context: Context<never, unknown>, input: unknown) => Promise<unknown>;
  readonly parse: InputParser;
  readonly fields: KnownFields;
  /** What the context of its handler inherits from. */
  readonly needs: object;
}

/** The operations of a file, for what they need. */
export type Resource<Names extends keyof Needs> = (needs: Pick<Needs, Names>) => readonly Bound[];

/** The caller that a handler gets, by the access level of its operation. */
interface CallerOf extends Record<Access, unknown> {
  public: undefined;
  session: Caller;
  agent: AgentCaller;
  service: ServiceCaller;
  operator: AnyCaller;
}
type CallerFor<Contract extends Operation> = Contract["agents"] extends true
  ? Participant
  : CallerOf[Contract["access"]];
type ResultOf<Contract extends Operation> = Contract["output"] extends z.ZodType
  ? Promise<z.output<Contract["output"]>>
  : Promise<void>;

/** Binds handlers to operations of the contract. `Names`: what the handlers of this file need. */
export const binder =
  <Names extends keyof Needs>() =>
  <Contract extends Operation>(
    contract: Contract,
    handle: (
      context: Context<Names, CallerFor<Contract>>,
      input: z.output<Contract["input"]>,
    ) => ResultOf<Contract>,
  ): ((needs: Pick<Needs, Names>) => Bound) => {
    const { input } = contract;
    const parse = createInputParser(input);
    const fields = fieldsOf(input);
    return (needs) => ({ contract, handle: handle as Bound["handle"], parse, fields, needs });
  };

/** The handlers of a file, for what they need. */
export const resource =
  <Names extends keyof Needs>(
    ...handlers: readonly ((needs: Pick<Needs, Names>) => Bound)[]
  ): Resource<Names> =>
  (needs) =>
    handlers.map((bound) => bound(needs));
