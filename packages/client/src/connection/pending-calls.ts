import type { ErrorParameters, SocketReply } from "@parley/protocol";
import { callError } from "../errors.ts";
import { MESSAGE_TOO_BIG } from "./close-codes.ts";

interface PendingCall {
  frame: string;
  timer: ReturnType<typeof setTimeout>;
  resolve(result: unknown): void;
  reject(error: Error): void;
}

/** Calls on one socket that wait for their replies. */
export class PendingCalls {
  readonly #calls = new Map<number, PendingCall>();
  #lastId = 0;

  /** Sends a call and resolves with its result. `onTimeout` is called if no reply comes in time. */
  send(name: string, input: object, { send, timeoutMs, onTimeout }: CallOptions): Promise<unknown> {
    const id = ++this.#lastId;
    const frame = JSON.stringify({ method: name, params: toSocketParams(input), id });
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#calls.delete(id);
        reject(callError("unavailable", "the service did not answer in time"));
        onTimeout();
      }, timeoutMs);
      this.#calls.set(id, { frame, timer, resolve, reject });
      send(frame);
    });
  }

  settle(reply: SocketReply): void {
    const id = Number(reply.id);
    const call = this.#calls.get(id);
    if (!call) return;
    this.#calls.delete(id);
    clearTimeout(call.timer);
    if (reply.ok) {
      call.resolve(reply.result);
    } else {
      const { code, message, parameters } = reply.error;
      call.reject(callError(code, message, withInputNames(parameters)));
    }
  }

  /** Rejects all calls because the socket closed. If a frame was too large, it was the largest. */
  rejectAll(closeCode: number, cause: unknown): void {
    const calls = [...this.#calls.values()];
    const tooLarge = closeCode === MESSAGE_TOO_BIG ? largest(calls) : undefined;
    for (const call of calls) {
      clearTimeout(call.timer);
      call.reject(
        call === tooLarge
          ? callError("payload_too_large", "the call is larger than the service takes")
          : callError("unavailable", "the connection was lost", { cause }),
      );
    }
    this.#calls.clear();
  }
}

/** The call with the most bytes, which is what the service limits. */
function largest(calls: readonly PendingCall[]): PendingCall | undefined {
  const encoder = new TextEncoder();
  const sizes = calls.map(({ frame }) => encoder.encode(frame).length);
  return calls[sizes.indexOf(Math.max(...sizes))];
}

interface CallOptions {
  send(frame: string): void;
  timeoutMs: number;
  onTimeout(): void;
}

/** On the socket `chat_id` is called `conversation_id`. */
function toSocketParams(input: object): object {
  if (!("chat_id" in input)) return input;
  const { chat_id, ...rest } = input;
  return { ...rest, conversation_id: chat_id };
}

/** Errors name a field as the caller named it: `chat_id`. */
function withInputNames(parameters?: ErrorParameters): ErrorParameters | undefined {
  const { conversation_id, ...fields } = parameters?.fields ?? {};
  if (conversation_id === undefined) return parameters;
  return { ...parameters, fields: { ...fields, chat_id: conversation_id } };
}
