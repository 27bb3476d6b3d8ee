/**
 * The floor: a minimal server on Bun for the same frames. It parses a send, replies, and publishes
 * one event to the conversation's topic; it checks and stores nothing. With `providerPort` it also
 * calls the provider and relays every chunk.
 */
import { loopLag } from "../packages/server/src/observe/lag.ts";

interface Plan {
  subscriptions: Record<string, string[]>;
  providerPort?: number;
}
const { subscriptions, providerPort } = JSON.parse(process.env.FLOOR ?? "{}") as Plan;

const lag = loopLag();

const server = Bun.serve<{ token: string }>({
  hostname: "127.0.0.1",
  port: 0,
  fetch(request, self) {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === "/metrics") return new Response(`parley_event_loop_lag_seconds ${lag()}`);
    const token = searchParams.get("token") ?? "";
    return self.upgrade(request, { data: { token } })
      ? undefined
      : new Response("", { status: 400 });
  },
  websocket: {
    perMessageDeflate: false,
    open(socket) {
      for (const topic of subscriptions[socket.data.token] ?? []) socket.subscribe(topic);
      socket.send('{"method":"events.hello","params":{}}');
    },
    message(socket, data) {
      const { id, params } = JSON.parse(String(data)) as {
        id: number;
        params: { conversation_id: string; content: string; client_msg_id: string };
      };
      const message = JSON.stringify({
        id: Bun.randomUUIDv7(),
        conversation_id: params.conversation_id,
        seq: id,
        version: id,
        sender: { username: "person_1", kind: "human", display_name: "person_1" },
        content: params.content,
        client_msg_id: params.client_msg_id,
        reply_to_id: null,
        created_at: new Date().toISOString(),
        edited_at: null,
        finalized_at: new Date().toISOString(),
        reactions: [],
        mentions: [],
        turn: null,
      });
      server.publish(params.conversation_id, `{"method":"events.messageNew","params":${message}}`);
      socket.send(`{"ok":true,"result":${message},"id":${id}}`);
      if (providerPort) void relay(params.conversation_id, providerPort);
    },
  },
});

async function relay(conversation: string, port: number): Promise<void> {
  const id = Bun.randomUUIDv7();
  let offset = 0;
  const response = await fetch(`http://127.0.0.1:${port}/v1`, { method: "POST", body: "{}" });
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    for (const line of decoder.decode(chunk, { stream: true }).split("\n")) {
      if (!line.startsWith("data: {")) continue;
      const data = JSON.parse(line.slice(6)) as { choices: [{ delta: { content?: string } }] };
      const delta = data.choices[0].delta.content;
      if (!delta) continue;
      offset += delta.length;
      const params = { id, delta, offset };
      server.publish(conversation, JSON.stringify({ method: "events.messageDelta", params }));
    }
  }
  server.publish(
    conversation,
    `{"method":"events.messageComplete","params":{"id":"${id}","turn":{"status":"complete"}}}`,
  );
}

process.stdout.write(`floor listens on http://127.0.0.1:${server.port}\n`);
