/** The answers of the agents, by a word in the question. */
const answers: [word: string, answer: string][] = [
  [
    "webhook",
    `The handler answers before it stores the event, so a crash in between loses it. Store first, then answer:

\`\`\`ts
app.post("/webhooks/stripe", async (request, response) => {
  const event = verify(request.body, request.headers["stripe-signature"]);
  // The primary key makes a second delivery a no-op.
  const isNew = await db.events.insertOnce({ id: event.id, payload: event });
  response.sendStatus(204);
  if (isNew) await queue.push(event.id);
});
\`\`\`

| Case | Before | After |
|---|---|---|
| Crash after the answer | event lost | repeated by Stripe |
| The same event twice | charged twice | ignored |
| Queue is down | 204, lost | 500, repeated |

- [x] Reproduced with last week's log
- [x] A test that replays it
- [ ] Deployed`,
  ],
  [
    "deploy",
    `All checks are green on \`main\`, and the migration is backwards compatible. Ready when you are.

<card title="Release 2.14.0 to production">
Three changes: **webhook idempotency**, faster invoices, new export. Rollback takes about 40 seconds.

<button action="release:now">Release now</button>
<button action="release:canary">Canary first</button>
<button action="dismiss:release">Not today</button>
</card>`,
  ],
  ["Sum up", "Duplicate charges came from retries of one event; each is stored once now."],
];

/** A provider with the `anthropic` protocol that returns the answers above. */
export function startProvider(): { url: string; stop(): void } {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { messages } = (await request.json()) as { messages: { content: unknown }[] };
      const asked = JSON.stringify(messages.at(-1)?.content ?? "");
      const [, text = "Yes."] =
        answers.toSorted(
          ([one], [other]) => asked.lastIndexOf(other) - asked.lastIndexOf(one),
        )[0] ?? [];
      const frames = [
        frame("message_start", { message: { usage: { input_tokens: 1840, output_tokens: 1 } } }),
        frame("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
        frame("content_block_delta", { index: 0, delta: { type: "text_delta", text } }),
        frame("content_block_stop", { index: 0 }),
        frame("message_delta", {
          delta: { stop_reason: "end_turn" },
          usage: { output_tokens: 312 },
        }),
        frame("message_stop", {}),
      ];
      return new Response(frames.join(""), { headers: { "content-type": "text/event-stream" } });
    },
  });
  return { url: server.url.origin, stop: () => void server.stop(true) };
}

const frame = (type: string, data: object) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`;
