import { beforeAll } from "bun:test";
import type { Message } from "@parley/protocol";
import {
  agentOf,
  answerTo,
  liftLimits,
  type Person,
  type Socket,
  say,
  signUp,
} from "@parley/testkit/client.ts";
import type { SentCall } from "@parley/testkit/provider-frames.ts";
import { toolCalls } from "@parley/testkit/provider-responders.ts";
import { providersAt, type Responder } from "@parley/testkit/provider-server.ts";
import { noRates, startServer, type TestServer } from "@parley/testkit/server.ts";
import { shared } from "@parley/testkit/shared.ts";
import { startSharedProvider } from "@parley/testkit/shared-provider.ts";
import { ToolServer } from "@parley/testkit/tool-server.ts";
import { newKey } from "@parley/testkit/turns.ts";

type Policy = "ask" | "direct" | "always";

/** Alice's agent, which may use two tools of her server `office`, in a group with Bob. */
export interface ToolGroup extends AsyncDisposable {
  url: string;
  alice: Person;
  bob: Person;
  office: ToolServer;
  path: string;
  /** Sets how the provider answers the next calls of the model. */
  respond: (...next: Responder[]) => void;
  /** Asks the agent as Bob, and waits until its answer is complete. */
  ask: (text: string) => Promise<Message>;
  /** Asks the agent as Bob. */
  say: (text: string) => Promise<Message>;
  /** A socket of Alice's. */
  reader: Socket;
}

const officeTool = (name: string, title: string, description: string) => ({
  name,
  title,
  description,
  inputSchema: { type: "object", properties: { text: { type: "string" } } },
});

export const officeTools = [
  officeTool("send_email", "Send email", "Sends a message from your mailbox."),
  officeTool("find_events", "Find events", "Searches your calendar."),
];

/** The server for all tests of this process whose agents use a stand-in for a provider. */
export function toolServer(): (policy?: Policy) => Promise<ToolGroup> {
  let started: ToolHarness;
  beforeAll(async () => {
    started = await shared("tool harness", startToolHarness);
  });
  return async (policy = "ask") => {
    const { provider, server } = started;
    const { url } = server;
    const [alice, bob] = await Promise.all([signUp(url, "alice"), signUp(url, "bob")]);
    await alice.call("updateMe", { display_name: "Alice Moreau" });
    await liftLimits(alice);
    const office = new ToolServer();
    office.tools = [...officeTools];
    const { id } = await alice.call("addToolServer", { name: "office", url: office.url });
    const agent = agentOf(alice);
    const grants = officeTools.map(({ name }) => ({ server_id: id, tool: name, policy }));
    await alice.call("setAgentTools", { agent_username: agent, grants });
    const key = await newKey(alice);
    const usernames = [bob.username, agent];
    const chat = await alice.call("startChat", { usernames, title: "Launch" });
    const reader = await alice.connect();
    const ask = (text: string) => say(bob, chat, `@${agent} ${text}`);
    return {
      url,
      alice,
      bob,
      office,
      reader,
      path: `/c/${chat.id}`,
      respond: (...next) => provider.respond(key, ...next),
      say: ask,
      ask: async (text) => answerTo(reader, await ask(text)),
      async [Symbol.asyncDispose]() {
        await reader[Symbol.asyncDispose]();
        await office[Symbol.asyncDispose]();
      },
    };
  };
}

interface ToolHarness extends AsyncDisposable {
  server: TestServer;
  provider: Awaited<ReturnType<typeof startSharedProvider>>;
}

async function startToolHarness(): Promise<ToolHarness> {
  const provider = await startSharedProvider();
  const server = await startServer({
    ...noRates,
    ...providersAt(provider.url, { max_output_tokens: 1000, context_tokens: 20_000 }),
    PARLEY_PRIVATE_ADDRESSES: "allow",
  });
  return {
    provider,
    server,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await provider[Symbol.asyncDispose]();
    },
  };
}

export const email = (input: Record<string, unknown>): SentCall => ({
  name: "office__send_email",
  input,
});

/** The model asks to send an email. */
export const wantsEmail = (...emails: Record<string, unknown>[]) =>
  toolCalls(emails.map(email), "I can tell the team.");
