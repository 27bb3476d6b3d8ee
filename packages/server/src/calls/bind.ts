import type { Access, Operation } from "@parley/protocol";
import type { z } from "zod";
import type { Recorder } from "../security/audit-log.ts";
import type {
  AgentCaller,
  AnyCaller,
  Caller,
  Participant,
  ServiceCaller,
} from "../security/caller.ts";
import type { ReadTx, WriteTx } from "../store/store.ts";
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

/** Binds a handler to an operation of the contract. It gets `First`, the context and the input. */
type Bind<Names extends keyof Needs, First extends unknown[]> = <Contract extends Operation>(
  contract: Contract,
  handler: (
    ...given: [...First, Context<Names, CallerFor<Contract>>, z.output<Contract["input"]>]
  ) => ResultOf<Contract>,
) => void;

/** The operations of a file. `Names`: what their handlers need, besides their unit of work. */
export interface Resource<Names extends keyof Needs> {
  handle: Bind<Names, []>;
  /** For a handler that is one unit of work, which only reads. */
  read: Bind<Names, [tx: ReadTx]>;
  /** For a handler that is one unit of work. */
  write: Bind<Names, [tx: WriteTx]>;
  /** For a handler that is one unit of work, whose entries of the audit log are stored with it. */
  audited: Bind<Names, [tx: WriteTx, record: Recorder]>;
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
  /** What a handler gets is known by its operation: the types say it to those who bind. */
  type Handler = (...given: unknown[]) => Promise<unknown>;
  type Units = Context<"store" | "audit", unknown>;
  const add = (contract: Operation, handle: (context: Units, input: unknown) => Promise<unknown>) =>
    operations.push({
      contract,
      handle: handle as Bound["handle"],
      parse: createInputParser(contract.input),
      fields: fieldsOf(contract.input),
    });
  return {
    handle: (contract, handler) => add(contract, handler as Handler),
    read: (contract, handler) =>
      add(contract, (context, input) =>
        context.store.read((tx) => (handler as Handler)(tx, context, input)),
      ),
    write: (contract, handler) =>
      add(contract, (context, input) =>
        context.store.write((tx) => (handler as Handler)(tx, context, input)),
      ),
    audited: (contract, handler) =>
      add(contract, (context, input) =>
        context.audit.write((tx, record) => (handler as Handler)(tx, record, context, input)),
      ),
    bind: (needs) => operations.map((each) => ({ ...each, needs })),
  };
}
