import type { SentCall } from "./provider-frames.ts";
import { beginAnswer } from "./provider-responders.ts";
import {
  type Exchange,
  type ReceivedRequest,
  type Responder,
  startProvider,
} from "./provider-server.ts";

/** A call that a test answers step by step. */
export interface PendingCall {
  readonly request: ReceivedRequest;
  sendText(...texts: string[]): Promise<void>;
  /** Ends the answer with tool calls. */
  callTools(...calls: SentCall[]): Promise<void>;
  /** Ends the answer properly. */
  complete(): Promise<void>;
  /** Breaks the connection. */
  disconnect(): void;
}

function pendingCall(exchange: Exchange): PendingCall {
  const { request, write, frames } = exchange;
  let begun: Promise<void> | null = null;
  const begin = () => {
    begun ??= beginAnswer(exchange);
    return begun;
  };
  return {
    request,
    async sendText(...texts) {
      await begin();
      for (const text of texts) await write(frames.text(text));
    },
    async callTools(...calls) {
      await begin();
      await write(frames.toolCalls(calls) + frames.end("tool_use"));
      await exchange.end();
    },
    async complete() {
      await begin();
      await write(frames.end("stop"));
      await exchange.end();
    },
    disconnect: () => exchange.cut(),
  };
}

export const keyOf = ({ headers }: ReceivedRequest): string =>
  headers["x-api-key"] ?? (headers.authorization ?? "").replace(/^Bearer /, "");

/**
 * A provider that several tests share: it tells them apart by their API keys. It answers the calls
 * of a key with the responders given for it, the last one repeatedly. Without any, a call waits
 * until the test answers it.
 */
export async function startSharedProvider() {
  const responders = new Map<string, Responder[]>();
  const pending = new Map<string, PendingCall[]>();
  const waiters = new Map<string, ((call: PendingCall) => void)[]>();
  const provider = await startProvider((exchange) => {
    const key = keyOf(exchange.request);
    const left = listOf(responders, key);
    const responder = left.length > 1 ? left.shift() : left[0];
    if (responder) return responder(exchange);
    const call = pendingCall(exchange);
    const waiter = listOf(waiters, key).shift();
    if (waiter) waiter(call);
    else listOf(pending, key).push(call);
    return exchange.stall();
  });
  return {
    ...provider,
    /** Sets how the next calls with a key are answered. None: the test answers them. */
    respond: (key: string, ...next: Responder[]) => void responders.set(key, next),
    /** The requests so far with a key. */
    calls: (key: string) => provider.requests.filter((request) => keyOf(request) === key),
    /** The next call with a key, for the test to answer. */
    nextCall: (key: string): Promise<PendingCall> => {
      const call = listOf(pending, key).shift();
      if (call) return Promise.resolve(call);
      return new Promise((resolve) => listOf(waiters, key).push(resolve));
    },
  };
}

function listOf<Item>(map: Map<string, Item[]>, key: string): Item[] {
  const list = map.get(key) ?? [];
  map.set(key, list);
  return list;
}
