const frame = (choice: object) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, ...choice }] })}\n\n`;
const endFrames = (finish_reason: string) =>
  `${frame({ delta: {}, finish_reason })}data: [DONE]\n\n`;

export const eventStream = (body: BodyInit) =>
  new Response(body, { headers: { "content-type": "text/event-stream" } });

/** An answer that asks for calls, as the Chat Completions protocol streams it. */
export const askForCalls = (calls: readonly { name: string; arguments: object }[]): Response =>
  eventStream(
    calls
      .map(({ name, arguments: input }, index) => {
        const id = `call_${crypto.randomUUID()}`;
        const whole = { index, id, function: { name, arguments: JSON.stringify(input) } };
        return frame({ delta: { tool_calls: [whole] } });
      })
      .join("") + endFrames("tool_calls"),
  );

/** Answers a request instead of the provider. Undefined: the provider streams text. */
type Answer = (request: Request) => Promise<Response | undefined>;

/**
 * A provider with the Chat Completions protocol. Each chunk contains the time it was sent. One timer
 * serves one slot of streams per millisecond of the pace, so that not all streams send at once.
 */
export function startProvider(port: number, chunks: number, paceMs: number, answer?: Answer) {
  const end = endFrames("stop");
  const slots = Array.from(
    { length: paceMs },
    () => new Map<ReadableStreamDefaultController, number>(),
  );
  let opened = 0;
  let tick = 0;
  const timer = setInterval(() => {
    const slot = slots[tick++ % paceMs];
    const content = ` ${(performance.timeOrigin + performance.now()).toFixed(3)}`;
    const chunk = frame({ delta: { content } });
    for (const [controller, sent] of slot ?? []) {
      controller.enqueue(sent + 1 < chunks ? chunk : chunk + end);
      slot?.set(controller, sent + 1);
      if (sent + 1 < chunks) continue;
      controller.close();
      slot?.delete(controller);
    }
  }, 1);
  function streamText(): Response {
    const slot = slots[opened++ % paceMs];
    const body = new ReadableStream({ start: (controller) => void slot?.set(controller, 0) });
    return eventStream(body);
  }
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port,
    idleTimeout: 60,
    fetch: async (request) => (await answer?.(request)) ?? streamText(),
  });
  return {
    stop() {
      clearInterval(timer);
      void server.stop(true);
    },
  };
}
