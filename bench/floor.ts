/**
 * The floor: the least a server on Bun could do for the same frames. It parses a send, answers
 * it and publishes one event to the conversation's topic; it stores and checks nothing.
 */
const server = Bun.serve<{ token: string }>({
  hostname: "127.0.0.1",
  port: 0,
  fetch(request, self) {
    const token = new URL(request.url).searchParams.get("token") ?? "";
    return self.upgrade(request, { data: { token } })
      ? undefined
      : new Response("", { status: 400 });
  },
  websocket: {
    perMessageDeflate: false,
    open(socket) {
      const { subscriptions } = JSON.parse(process.env.FLOOR ?? "{}") as {
        subscriptions: Record<string, string[]>;
      };
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
    },
  },
});
process.stdout.write(`floor listens on http://127.0.0.1:${server.port}\n`);
