/**
 * The floor: a minimal server on Bun for the same frames. It parses a send, replies, and publishes
 * one event to the conversation's topic; it checks and stores nothing. With `database` it stores the
 * message before it replies. With `nats` it also publishes the event to other nodes.
 * With `providerPort` it also calls the provider and relays every chunk; with `database` and
 * `providerPort` it stores the answer too.
 * With `toolServerPort` it makes the calls of tools that the provider asks for. With `folder` it syncs a
 * log for each send, and takes uploads and downloads.
 */

import { createNatsLink } from "../packages/server/src/changes/nats-link.ts";
import { watchLoopLag } from "../packages/server/src/observe/lag.ts";
import { createLogger } from "../packages/server/src/observe/log.ts";
import { answerFloor } from "./answer-floor.ts";
import { fileFloor } from "./file-floor.ts";
import { messageFloor } from "./message-floor.ts";

interface Plan {
  subscriptions: Record<string, string[]>;
  /** The path of a new SQLite database, or the address of an empty PostgreSQL database. */
  database?: string;
  /** The address of NATS. */
  nats?: string;
  providerPort?: number;
  toolServerPort?: number;
  folder?: string;
}
const { subscriptions, database, nats, providerPort, toolServerPort, folder } = JSON.parse(
  process.env.FLOOR ?? "{}",
) as Plan;

const lag = watchLoopLag();
const store = database === undefined ? null : messageFloor(database);
const bus =
  nats === undefined ? null : createNatsLink({ servers: [nats] }, "floor", createLogger("warn"));
const heard = new Set<string>();
const decoder = new TextDecoder();
const answers = database && providerPort ? answerFloor(`${database}-answers`) : null;
const files = folder === undefined ? null : fileFloor(folder);

const server = Bun.serve<{ token: string }>({
  hostname: "127.0.0.1",
  port: 0,
  fetch(request, self) {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === "/metrics") return new Response(`parley_event_loop_lag_seconds ${lag()}`);
    const transfer = files?.serve(request);
    if (transfer) return transfer;
    const token = searchParams.get("token") ?? "";
    return self.upgrade(request, { data: { token } })
      ? undefined
      : new Response("", { status: 400 });
  },
  websocket: {
    perMessageDeflate: false,
    open(socket) {
      for (const topic of subscriptions[socket.data.token] ?? []) {
        socket.subscribe(topic);
        hear(topic);
      }
      socket.send('{"method":"events.hello","params":{}}');
    },
    message(socket, data) {
      const { id, params } = JSON.parse(String(data)) as {
        id: number;
        params: { conversation_id: string; content: string; client_msg_id: string };
      };
      const uuid = Bun.randomUUIDv7();
      const message = JSON.stringify({
        id: uuid,
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
      const answer = () => {
        const event = `{"method":"events.messageNew","params":${message}}`;
        server.publish(params.conversation_id, event);
        bus?.publish(params.conversation_id, event);
        socket.send(`{"ok":true,"result":${message},"id":${id}}`);
        if (providerPort) void relay(params.conversation_id, providerPort);
      };
      if (store) store({ ...params, uuid }, answer);
      else if (files) void files.append().then(answer);
      else answer();
    },
  },
});

/** Publishes what other nodes publish to a topic. */
function hear(topic: string): void {
  if (!bus || heard.has(topic)) return;
  heard.add(topic);
  bus.subscribe(topic, (event) => void server.publish(topic, decoder.decode(event)));
}

interface ToolUse {
  id: string;
  function: { name: string; arguments: string };
}

interface ProviderChunk {
  choices: [{ delta: { content?: string; tool_calls?: [ToolUse] } }];
}

async function relay(conversation: string, port: number): Promise<void> {
  const id = Bun.randomUUIDv7();
  let content = "";
  const show = (delta: string) => {
    content += delta;
    const params = { id, delta, offset: content.length };
    const publish = () =>
      void server.publish(conversation, JSON.stringify({ method: "events.messageDelta", params }));
    if (answers) answers.append(id, params.offset, delta, publish);
    else publish();
  };
  if (answers) await new Promise<void>((done) => answers.begin(id, done));
  const callTool = toolServerPort ? await openToolServer(toolServerPort) : undefined;
  const messages: object[] = [{ role: "user", content: "go on" }];
  for (;;) {
    const uses = await askModel(port, messages, show);
    if (uses.length === 0 || !callTool) break;
    messages.push({ role: "assistant", content: null, tool_calls: uses });
    for (const use of uses) {
      messages.push({ role: "tool", tool_call_id: use.id, content: await callTool(use) });
    }
  }
  if (answers) await new Promise<void>((done) => answers.end(id, content, done));
  server.publish(
    conversation,
    `{"method":"events.messageComplete","params":{"id":"${id}","turn":{"status":"complete"}}}`,
  );
}

/** Returns the calls that the model asks for. */
async function askModel(
  port: number,
  messages: readonly object[],
  show: (delta: string) => void,
): Promise<ToolUse[]> {
  const uses: ToolUse[] = [];
  const response = await fetch(`http://127.0.0.1:${port}/v1`, {
    method: "POST",
    body: JSON.stringify({ messages }),
  });
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    for (const line of decoder.decode(chunk, { stream: true }).split("\n")) {
      if (!line.startsWith("data: {")) continue;
      const { delta } = (JSON.parse(line.slice(6)) as ProviderChunk).choices[0];
      if (delta.content) show(delta.content);
      uses.push(...(delta.tool_calls ?? []));
    }
  }
  return uses;
}

/** Makes the requests of an MCP client. Only tools of the server are called there. */
async function openToolServer(port: number): Promise<(use: ToolUse) => Promise<string>> {
  const post = async (message: object): Promise<string> => {
    const response = await fetch(`http://127.0.0.1:${port}/mcp`, {
      method: "POST",
      body: JSON.stringify({ jsonrpc: "2.0", ...message }),
    });
    return response.text();
  };
  await post({ id: 0, method: "server/discover" });
  await post({ id: 1, method: "initialize" });
  await post({ method: "notifications/initialized" });
  await post({ id: 2, method: "tools/list" });
  return async ({ function: { name, arguments: input } }) => {
    const [, tool] = name.split("__");
    if (!tool) return "";
    const params = { name: tool, arguments: JSON.parse(input) };
    const sent = JSON.parse(await post({ id: 3, method: "tools/call", params }));
    return (sent as { result: { content: [{ text: string }] } }).result.content[0].text;
  };
}

process.stdout.write(`floor listens on http://127.0.0.1:${server.port}\n`);
