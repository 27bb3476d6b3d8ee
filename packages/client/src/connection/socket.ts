import type { Account, ErrorParameters, EventFrame, SocketReply } from "@parley/protocol";
import { callError } from "../errors.ts";
import type { WebSocketClass } from "../types.ts";

/** A connection on which nothing was heard for so long is asked whether it is still there. */
const QUIET_MS = 30_000;
/** A sign of life needs no work on the other side: it comes soon or not at all. */
const SIGN_MS = 5000;
/** An attempt without a hello for so long is given up: the next one may find a server that is back. */
const GREETING_MS = 8000;
const TOO_BIG = 1009;
const ABNORMAL = 1006;
/** A `readyState`. */
const OPEN = 1;

export interface SocketOptions {
  /** Of the service, with `http` or `https`. */
  url: string;
  token: string;
  timeoutMs: number;
  WebSocket: WebSocketClass;
  /** The service has said hello: from here on no event is missed. */
  onOpen(account: Account, historyId: string | undefined): void;
  onEvent(frame: EventFrame): void;
  /** Called once, also when it never opened. */
  onClose(code: number): void;
}

export interface Socket {
  call(name: string, input: object): Promise<unknown>;
  /** Asks for a sign of life. */
  check(): void;
  close(): void;
}

interface Pending {
  size: number;
  timer: ReturnType<typeof setTimeout>;
  resolve(result: unknown): void;
  reject(error: Error): void;
}

/** One socket from its opening to its end. A call without an answer ends it: it may be half open. */
export function openSocket(options: SocketOptions): Socket {
  const { url, token, timeoutMs } = options;
  const pending = new Map<number, Pending>();
  let calls = 0;
  let heardAt = Date.now();
  let ended = false;
  /** What a WebSocket outside of browsers says of its failure. */
  let failure: unknown;

  const wire = new options.WebSocket(
    `${url.replace(/^http/, "ws")}/api/ws?token=${encodeURIComponent(token)}`,
  );
  const greeting = setTimeout(() => end(ABNORMAL), Math.min(GREETING_MS, timeoutMs));
  const pulse = setInterval(() => {
    if (Date.now() - heardAt >= QUIET_MS) check();
  }, QUIET_MS / 2);

  wire.addEventListener("message", ({ data }) => {
    if (ended) return;
    heardAt = Date.now();
    const frame = JSON.parse(String(data)) as EventFrame | SocketReply;
    if (!("method" in frame)) settle(frame);
    else if (frame.method !== "events.hello") options.onEvent(frame);
    else {
      clearTimeout(greeting);
      options.onOpen(frame.params, frame.history_id);
      options.onEvent(frame);
    }
  });
  wire.addEventListener("close", ({ code }) => end(code));
  wire.addEventListener("error", (event) => {
    failure = "error" in event ? event.error : undefined;
  });

  function settle(reply: SocketReply): void {
    const call = pending.get(Number(reply.id));
    if (!call) return;
    pending.delete(Number(reply.id));
    clearTimeout(call.timer);
    if (reply.ok) {
      call.resolve(reply.result);
    } else {
      const { code, message, parameters } = reply.error;
      call.reject(callError(code, message, withInputNames(parameters)));
    }
  }

  function end(code: number): void {
    if (ended) return;
    ended = true;
    clearTimeout(greeting);
    clearInterval(pulse);
    const largest = code === TOO_BIG ? Math.max(...[...pending.values()].map(sizeOf)) : undefined;
    const cause = failure ?? new Error(`the socket closed with code ${code}`);
    for (const { size, timer, reject } of pending.values()) {
      clearTimeout(timer);
      reject(
        size === largest
          ? callError("payload_too_large", "the call is larger than the service takes")
          : callError("unavailable", "the connection was lost", { cause }),
      );
    }
    pending.clear();
    // A dead line may take minutes to close; nobody waits for it.
    wire.close();
    options.onClose(code);
  }

  function call(name: string, input: object, patienceMs = timeoutMs): Promise<unknown> {
    const id = ++calls;
    const frame = JSON.stringify({ method: name, params: asSocketParams(input), id });
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        pending.delete(id);
        reject(callError("unavailable", "the service did not answer in time"));
        end(ABNORMAL);
      }, patienceMs);
      pending.set(id, { size: frame.length, timer, resolve, reject });
      wire.send(frame);
    });
  }

  function check(): void {
    if (ended || wire.readyState !== OPEN) return;
    call("getMe", {}, Math.min(SIGN_MS, timeoutMs)).catch(() => {});
  }

  return { call, check, close: () => end(1000) };
}

const sizeOf = ({ size }: Pending) => size;

/** On the socket a conversation goes by its full name. */
function asSocketParams(input: object): object {
  if (!("chat_id" in input)) return input;
  const { chat_id, ...rest } = input;
  return { ...rest, conversation_id: chat_id };
}

/** Callers know the field by the name that they gave it. */
function withInputNames(parameters?: ErrorParameters): ErrorParameters | undefined {
  const { conversation_id, ...fields } = parameters?.fields ?? {};
  if (conversation_id === undefined) return parameters;
  return { ...parameters, fields: { ...fields, chat_id: conversation_id } };
}
