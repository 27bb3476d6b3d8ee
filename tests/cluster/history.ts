/** `unknown` when nobody said what became of it: it may have happened, or may still. */
export type Outcome = "ok" | "fail" | "unknown";

/** What somebody asked for. */
export type Request =
  | { kind: "send"; chat: string; key: string; content: string; asks?: boolean }
  | { kind: "edit"; chat: string; message: string; content: string }
  | { kind: "delete"; chat: string; message: string }
  | { kind: "react"; chat: string; message: string; emoji: string; on: boolean }
  | { kind: "read"; chat: string; seq: number }
  | { kind: "start"; title: string; usernames: readonly string[] }
  | { kind: "seat"; chat: string; username: string; on: boolean };

/** What an operation that succeeded was answered with, as far as it tells something. */
export interface Result {
  /** Of the message or the conversation that was made. */
  id?: string;
  /** The value of the counter that the change has. */
  place?: number;
}

/** One operation of one client, from when it was asked for until it was answered. */
export type Operation<Kind extends Request["kind"] = Request["kind"]> = Extract<
  Request,
  { kind: Kind }
> & {
  /** Its place in the history. */
  index: number;
  client: string;
  invoked: number;
  /** When the answer came; infinite for what is unknown. */
  completed: number;
  outcome: Outcome;
  /** What it was refused with. */
  code?: string;
  result: Result;
};

export const isOf =
  <Kind extends Request["kind"]>(kind: Kind) =>
  (operation: Operation): operation is Operation<Kind> =>
    operation.kind === kind;

/** Whether it has, or may have, changed anything. */
export const mayHaveHappened = ({ outcome }: Operation) => outcome !== "fail";

/** Everything that was asked for, in the order in which it was. */
export class History {
  readonly operations: Operation[] = [];

  /** Makes a call and notes what becomes of it. Never rejects. */
  async record(
    client: string,
    request: Request,
    call: () => Promise<Result>,
    refusal: (error: unknown) => string | null,
  ): Promise<Operation> {
    const operation: Operation = {
      ...request,
      index: this.operations.length,
      client,
      invoked: performance.now(),
      completed: Number.POSITIVE_INFINITY,
      outcome: "unknown",
      result: {},
    };
    this.operations.push(operation);
    try {
      operation.result = await call();
      operation.outcome = "ok";
    } catch (error) {
      const code = refusal(error);
      if (code === null) return operation;
      Object.assign(operation, { outcome: "fail", code });
    }
    operation.completed = performance.now();
    return operation;
  }
}

/** An operation as a line, for whoever has to find out what went wrong. */
export function describe({ index, client, invoked, completed, ...rest }: Operation): string {
  const { outcome, code, result, ...request } = rest;
  const times = `${invoked.toFixed(1)}–${completed.toFixed(1)} ms`;
  const end = [outcome, code, Object.keys(result).length > 0 && JSON.stringify(result)];
  return `#${index} ${client} ${times} ${JSON.stringify(request)} → ${end.filter(Boolean).join(" ")}`;
}
