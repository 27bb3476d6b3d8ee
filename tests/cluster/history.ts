/** `unknown` if no answer arrived: the operation may have happened, or may still happen. */
export type Outcome = "ok" | "fail" | "unknown";

/** The call that a client makes. */
export type Request =
  | { kind: "send"; chat: string; key: string; content: string; asks?: boolean }
  | { kind: "edit"; chat: string; message: string; content: string }
  | { kind: "delete"; chat: string; message: string }
  | { kind: "react"; chat: string; message: string; emoji: string; on: boolean }
  | { kind: "read"; chat: string; seq: number }
  | { kind: "start"; title: string; usernames: readonly string[] }
  | { kind: "membership"; chat: string; username: string; on: boolean };

/** The part of a successful answer that the checks use. */
export interface Result {
  /** The id of the created message or conversation. */
  id?: string;
  /** The value of the conversation's counter after the change. */
  seq?: number;
}

/** One operation of one client, from its call to its answer. */
export type Operation<Kind extends Request["kind"] = Request["kind"]> = Extract<
  Request,
  { kind: Kind }
> & {
  /** Its index in the history. */
  index: number;
  client: string;
  invoked: number;
  /** When the answer arrived; infinite if none did. */
  completed: number;
  outcome: Outcome;
  /** The error code of a refusal. */
  code?: string;
  result: Result;
};

export const isOf =
  <Kind extends Request["kind"]>(kind: Kind) =>
  (operation: Operation): operation is Operation<Kind> =>
    operation.kind === kind;

/** Whether the operation took effect or may have. */
export const mayHaveHappened = ({ outcome }: Operation) => outcome !== "fail";

/** All operations, in the order of their calls. */
export class History {
  readonly operations: Operation[] = [];

  /** Makes a call and records its outcome. Never rejects. */
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

/** An operation as one line of text. */
export function describe({ index, client, invoked, completed, ...rest }: Operation): string {
  const { outcome, code, result, ...request } = rest;
  const times = `${invoked.toFixed(1)}–${completed.toFixed(1)} ms`;
  const end = [outcome, code, Object.keys(result).length > 0 && JSON.stringify(result)];
  return `#${index} ${client} ${times} ${JSON.stringify(request)} → ${end.filter(Boolean).join(" ")}`;
}
