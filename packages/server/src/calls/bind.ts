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

/** The operations of a file. `Names`: what their handlers need. */
export interface Resource<Names extends keyof Needs> {
  /** Binds a handler to an operation of the contract. */
  handle<Contract extends Operation>(
    contract: Contract,
    handler: (
      context: Context<Names, CallerFor<Contract>>,
      input: z.output<Contract["input"]>,
    ) => ResultOf<Contract>,
  ): void;
  /** The operations with their handlers, for what these need. */
  bind(needs: Pick<Needs, Names>): readonly Bound[];
}

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

export function createResource<Names extends keyof Needs>(): Resource<Names> {
  const operations: Omit<Bound, "needs">[] = [];
  return {
    handle(contract, handler) {
      const { input } = contract;
      const handle = handler as Bound["handle"];
      operations.push({
        contract,
        handle,
        parse: createInputParser(input),
        fields: fieldsOf(input),
      });
    },
    bind: (needs) => operations.map((each) => ({ ...each, needs })),
  };
}
