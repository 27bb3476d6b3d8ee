import { join } from "node:path";
import { openMasterKeyFile } from "../packages/server/src/config/master-keys.ts";
import { DEFAULT_LIMITS } from "../packages/server/src/rules/budget.ts";
import { hashToken } from "../packages/server/src/rules/tokens.ts";
import { sessionEnd } from "../packages/server/src/security/tokens.ts";
import { createVault } from "../packages/server/src/security/vault.ts";
import type { AccountRecord } from "../packages/server/src/store/accounts.ts";
import type { ConversationRecord } from "../packages/server/src/store/conversations.ts";
import { openSqliteStore } from "../packages/server/src/store/sqlite/index.ts";
import type { Store, WriteTx } from "../packages/server/src/store/store.ts";
import type { NewToolServer, ToolRecord } from "../packages/server/src/store/tools.ts";

export interface Seed {
  /** One token for each person. */
  tokens: string[];
  /** The ids of the conversations, in the order of `groups`. */
  conversations: string[];
}

/** As many as an agent may be granted. */
const MAX_GRANTS = 64;

export interface SeedToolServer extends Pick<NewToolServer, "name" | "url"> {
  readonly tools: readonly ToolRecord[];
}

/** Writes people, conversations and messages directly into a store, before the server starts. */
export async function seed(
  dataDir: string,
  plan: {
    people: number;
    /** The members of each conversation, as indexes of the people. */
    groups: number[][];
    /** Adds an agent of this provider for each person, to the conversation with the same index. */
    agents?: string;
    /** Adds this tool server for each person, and grants its tools to their agent. */
    toolServer?: SeedToolServer;
    /** How many messages to write to the first conversation. */
    messages?: number;
  },
  store: Store = openSqliteStore(join(dataDir, "parley.db")),
): Promise<Seed> {
  const accounts: AccountRecord[] = [];
  const tokens: string[] = [];
  for (let index = 0; index < plan.people; index++) {
    const token = `ply_bench_${index}`;
    accounts.push(await addPerson(store, `person_${index}`, token));
    tokens.push(token);
  }
  const made = await Promise.all(
    plan.groups.map((members) =>
      addGroup(
        store,
        members.map((place) => accounts[place] as AccountRecord),
      ),
    ),
  );
  if (plan.agents) {
    await addAgents(store, dataDir, accounts, made, plan.agents, plan.toolServer);
  }
  const [first] = made;
  if (first && plan.messages) await addMessages(store, first, accounts, plan.messages);
  await store.close();
  return { tokens, conversations: made.map(({ uuid }) => uuid) };
}

async function addPerson(store: Store, username: string, token: string): Promise<AccountRecord> {
  return store.write(async (tx) => {
    const at = Date.now();
    const account = await tx.insertAccount({ username, kind: "human", display_name: username, at });
    if (!account) throw new Error(`${username} already exists`);
    await tx.insertSession({
      id: Bun.randomUUIDv7(),
      token_hash: hashToken(token),
      account_id: account.id,
      user_agent: null,
      at,
      expires_at: sessionEnd(at, at, { session_days: 90 }),
    });
    return account;
  });
}

function addGroup(store: Store, members: AccountRecord[]): Promise<ConversationRecord> {
  return store.write(async (tx) => {
    const [creator] = members;
    if (!creator) throw new Error("a group needs a member");
    const uuid = Bun.randomUUIDv7();
    const at = Date.now();
    const id = await tx.insertConversation({
      uuid,
      kind: "group",
      title: "bench",
      created_by: creator.id,
      at,
    });
    for (let from = 0; from < members.length; from += 500) {
      const some = members.slice(from, from + 500);
      await tx.insertMembers(
        id,
        some.map((account) => account.id),
        at,
      );
    }
    return (await tx.conversation(uuid, creator.id)) as ConversationRecord;
  });
}

async function addAgents(
  store: Store,
  dataDir: string,
  accounts: AccountRecord[],
  conversations: ConversationRecord[],
  provider: string,
  toolServer: SeedToolServer | undefined,
): Promise<void> {
  const sealing = createVault(openMasterKeyFile(join(dataDir, "master.key")).read());
  for (const [place, owner] of accounts.entries()) {
    const conversation = conversations[place];
    if (!conversation) return;
    await store.write(async (tx) => {
      const at = Date.now();
      const agent = await tx.insertAccount({
        username: `${owner.username}:${provider}`,
        kind: "agent",
        display_name: "bench",
        owner_id: owner.id,
        provider,
        at,
      });
      if (!agent) throw new Error("the agent already exists");
      const key = { owner_id: owner.id, provider };
      await tx.setAgentKey({ ...key, sealed: sealing.seal("bench-key", key), tail: "", at });
      const unlimited = { daily_tokens: null, turns_per_minute: null };
      await tx.setAgentLimits(agent.id, { ...DEFAULT_LIMITS, ...unlimited });
      await tx.insertMembers(conversation.id, [agent.id], at);
      await tx.setAlwaysOn(conversation.id, agent.id, true);
      if (toolServer) await addToolServer(tx, owner.id, agent.id, toolServer);
    });
  }
}

async function addToolServer(
  tx: WriteTx,
  owner_id: number,
  agentId: number,
  { name, url, tools }: SeedToolServer,
): Promise<void> {
  const id = Bun.randomUUIDv7();
  const at = Date.now();
  await tx.insertToolServer({ id, owner_id, name, url, secrets: null, created_at: at }, 1);
  await tx.setToolServerState({ id, url }, { status: "ready", error: null, tools, at });
  const grants = tools.slice(0, MAX_GRANTS).map(({ name: tool, fingerprint }) => ({
    server_id: id,
    tool,
    policy: "always" as const,
    fingerprint,
  }));
  await tx.setToolGrants(agentId, grants);
}

async function addMessages(
  store: Store,
  conversation: ConversationRecord,
  accounts: AccountRecord[],
  count: number,
): Promise<void> {
  const sender = accounts[0] as AccountRecord;
  for (let done = 0; done < count; done += 1000) {
    await store.write(async (tx) => {
      // The unit owns the conversation that it reads.
      const owned = (await tx.conversation(conversation.uuid, sender.id)) as ConversationRecord;
      for (let index = done; index < Math.min(done + 1000, count); index++) {
        await tx.insertMessage({
          conversation: owned,
          sender,
          content: `message ${index} of the bench, as long as people's messages mostly are`,
          client_msg_id: null,
          reply_to_id: null,
          mentions: [],
          at: Date.now(),
        });
      }
    });
  }
}
