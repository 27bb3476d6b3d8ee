import { until } from "./until.ts";

/** A request as a webhook's receiver got it. */
export interface ReceivedHook {
  headers: Record<string, string>;
  body: string;
  /** The event frame. */
  data: { method: string; params: Record<string, unknown>; at?: { seq: number } };
}

type Answer = Response | Promise<Response>;

/** A receiver of webhooks. Each request is recorded before it is answered. */
export function startReceiver(answer: (hook: ReceivedHook) => Answer = () => new Response("ok")) {
  const received: ReceivedHook[] = [];
  let answering = answer;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 60,
    async fetch(request) {
      const body = await request.text();
      const headers = Object.fromEntries(request.headers);
      const hook = { headers, body, data: JSON.parse(body).data };
      received.push(hook);
      return answering(hook);
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}/hook`,
    received,
    /** The contents of the messages that it got, repetitions included. */
    contents: () => received.map(({ data }) => String(data.params.content)),
    answer: (next: typeof answer) => {
      answering = next;
    },
    has: (count: number) => until(() => received.length >= count, `${count} deliveries`),
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}

/** An answer that does not come. */
export const hang = () => new Promise<Response>(() => {});
