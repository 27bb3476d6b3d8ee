import type { BlockList, Message } from "@parley/protocol";
import { publicAccount } from "../../rules/accounts.ts";
import { agentIdentity } from "../../rules/agents.ts";
import { iso } from "../../rules/time.ts";
import type { AccountRecord } from "../../store/accounts.ts";
import type { AgentRecord } from "../../store/agents.ts";
import type { Awaitable } from "../../store/awaitable.ts";
import { FIRST_FILE } from "../../store/files.ts";
import type { IncomingHookRecord } from "../../store/incoming-hooks.ts";
import type { ReactionRecord } from "../../store/reactions.ts";
import type { ReportRecord } from "../../store/reports.ts";
import type { ReadTx, Store } from "../../store/store.ts";
import type { ToolServerRecord } from "../../store/tools.ts";
import type { WebhookRecord } from "../../store/webhooks.ts";
import type { Blobs } from "../blobs.ts";
import type { ZipEntry } from "./zip.ts";

/** Messages, reactions or reports read at a time: few, because other reads wait meanwhile. */
const PAGE_ROWS = 200;

type Readable = Pick<Store, "read">;

export interface AccountDataOptions {
  readonly store: Readable;
  /** Null if the server takes no files. */
  readonly blobs: Pick<Blobs, "open"> | null;
  readonly account: AccountRecord;
  /** Called in every read of a file that is read in steps. Throws to stop. */
  readonly check?: (tx: ReadTx) => Promise<void>;
  /** Called between two reads, with the number of messages exported so far. May throw to stop. */
  readonly progress: (messages: number) => unknown;
}

/**
 * Everything the service has of a person, as files of JSON Lines, and the files that the person has
 * uploaded. It is read in small steps while the files are written, and only the current page is in
 * memory.
 */
export async function* accountData(options: AccountDataOptions): AsyncGenerator<ZipEntry> {
  const { store, account } = options;
  const { id, username } = account;
  const file = (name: string, read: (tx: ReadTx) => Promise<readonly unknown[]>): ZipEntry => ({
    name: `${name}.jsonl`,
    content: linesOf(() => store.read(read)),
  });
  yield { name: "README.txt", content: linesOf(async () => [], README) };
  yield file("account", (tx) => accountRecord(tx, account));
  yield file("sessions", async (tx) => tx.sessions(id, Date.now()));
  yield file("agents", async (tx) => {
    const agents: unknown[] = [];
    for (const agent of await tx.agents(id)) {
      agents.push({ ...agentRecord(agent), tools: await tx.toolGrants(agent.account.id) });
    }
    return agents;
  });
  yield file("tool-servers", async (tx) => (await tx.toolServers(id)).map(toolServerRecord));
  yield file("usage", async (tx) => tx.usage(id, null, null));
  yield file("blocked", async (tx) => blockedPeople(await tx.blockList(id)));
  yield file("incoming-hooks", async (tx) => (await tx.incomingHooksBy(username)).map(hookRecord));
  yield file("webhooks", async (tx) => (await tx.webhooks()).filter(isBy(username)).map(sentTo));
  yield { name: "reports.jsonl", content: reportLines(options) };
  yield { name: "conversations.jsonl", content: conversationLines(options) };
  yield { name: "messages.jsonl", content: messageLines(options) };
  yield { name: "reactions.jsonl", content: reactionLines(options) };
  yield* uploadedFiles(options);
}

/** The files that a person has uploaded, by id and name. */
async function* uploadedFiles(options: AccountDataOptions): AsyncGenerator<ZipEntry> {
  const { store, blobs, account, check, progress } = options;
  if (!blobs) return;
  const next = (after: string) =>
    store.read(async (tx) => {
      await check?.(tx);
      return tx.filesOf(account.id, after, PAGE_ROWS);
    });
  let page = await next(FIRST_FILE);
  while (page.length > 0) {
    for (const { id, name, blob } of page) {
      await progress(0);
      const found = blob && (await blobs.open(blob));
      // It was deleted meanwhile, or its bytes are missing.
      if (!found) continue;
      const content = bytesOf(await found.stream(), () => progress(0));
      yield { name: `files/${id}-${name}`, content, isCompressed: true };
    }
    page = await next(page.at(-1)?.id ?? FIRST_FILE);
  }
}

async function* bytesOf(
  stream: ReadableStream<Uint8Array>,
  progress: () => unknown,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of stream) {
    yield chunk;
    await progress();
  }
}

const README = `Your data, as JSON Lines: each line of a file is one JSON object, in UTF-8.

account.jsonl        your account, and who may add you to conversations (added_by)
sessions.jsonl       where you are signed in
agents.jsonl         your agents and their settings; provider keys are not included
tool-servers.jsonl   the tool servers that you added, without their tokens
usage.jsonl          what your agents have used, by day and conversation
blocked.jsonl        people whom you have blocked
incoming-hooks.jsonl the incoming hooks that you created, without their secrets
webhooks.jsonl       the webhooks that you created, without their secrets
reports.jsonl        the messages that you reported, and why
conversations.jsonl  the conversations you take part in
messages.jsonl       their messages, without those that are deleted or that you have hidden;
                     of conversations that you have left, only your own
reactions.jsonl      your reactions to messages
files/               the files that you have uploaded, by id and name
`;

const line = (value: unknown) => `${JSON.stringify(value)}\n`;

async function* linesOf(
  read: () => Promise<readonly unknown[]>,
  text = "",
): AsyncGenerator<string> {
  if (text !== "") yield text;
  for (const each of await read()) yield line(each);
}

async function accountRecord(tx: ReadTx, { id, username }: AccountRecord): Promise<unknown[]> {
  const found = await tx.managedAccounts({ username, limit: 1 });
  const added_by = await tx.addedBy(id);
  const [avatar] = await tx.avatars([id]);
  return found.map((account) => ({
    username,
    display_name: account.display_name,
    external_id: account.external_id,
    metadata: account.metadata ?? {},
    created_at: new Date(account.created_at).toISOString(),
    is_operator: account.is_operator,
    added_by,
    picture_id: avatar?.file_id ?? null,
  }));
}

const toolServerRecord = ({ secrets, owner_id, created_at, ...server }: ToolServerRecord) => ({
  ...server,
  created_at: iso(created_at),
});

const agentRecord = ({ account, model, instructions, limits, sealed_key }: AgentRecord) => ({
  ...publicAccount(account),
  ...agentIdentity(account),
  model,
  instructions,
  limits,
  key_configured: sealed_key !== null,
});

const blockedPeople = ({ usernames }: BlockList) => usernames.map((username) => ({ username }));

const hookRecord = ({ id, name, chat, account, created_at }: IncomingHookRecord) => ({
  id,
  name,
  chat_id: chat,
  account,
  created_at: iso(created_at),
});

const isBy = (username: string) => (webhook: WebhookRecord) => webhook.creator === username;

const sentTo = ({ id, url, events, chat, disabled, created_at }: WebhookRecord) => ({
  id,
  url,
  events,
  chat_id: chat,
  disabled,
  created_at: iso(created_at),
});

/** Without what operators noted, and without the copy of the message, which is somebody else's. */
const ownReport = ({ id, at, reason, message, resolved_at }: ReportRecord) => ({
  id,
  at: iso(at),
  message_id: message.id,
  conversation_id: message.conversation_id,
  reason,
  resolved_at: resolved_at === null ? null : iso(resolved_at),
});

async function* reportLines(options: AccountDataOptions): AsyncGenerator<string> {
  const { account } = options;
  yield* pagedLines(options, ownReport, (tx, last?: ReportRecord) =>
    tx.reports({ reporterId: account.id, before: last?.id, limit: PAGE_ROWS }),
  );
}

const ownReaction = ({ place: _, created_at, ...reaction }: ReactionRecord) => ({
  ...reaction,
  created_at: iso(created_at),
});

async function* reactionLines(options: AccountDataOptions): AsyncGenerator<string> {
  const { account } = options;
  yield* pagedLines(options, ownReaction, (tx, last?: ReactionRecord) =>
    tx.reactionsBy({ accountId: account.id, after: last?.place ?? 0, limit: PAGE_ROWS }),
  );
}

/** The lines of a list that is read in pages. `read` gets the last item of the page before. */
async function* pagedLines<Item>(
  { store, check, progress }: AccountDataOptions,
  shown: (item: Item) => unknown,
  read: (tx: ReadTx, last?: Item) => Awaitable<Item[]>,
): AsyncGenerator<string> {
  let last: Item | undefined;
  do {
    const after = last;
    const page = await store.read(async (tx) => {
      await check?.(tx);
      return read(tx, after);
    });
    yield page.map((each) => line(shown(each))).join("");
    await progress(0);
    last = page.length < PAGE_ROWS ? undefined : page.at(-1);
  } while (last !== undefined);
}

const conversationsOf = ({ store, account }: AccountDataOptions) =>
  store.read((tx) => tx.counters(account.id));

async function* conversationLines(options: AccountDataOptions): AsyncGenerator<string> {
  const { store, account, check, progress } = options;
  for (const { uuid } of await conversationsOf(options)) {
    const detail = await store.read(async (tx) => {
      await check?.(tx);
      const found = await tx.conversation(uuid, account.id);
      return found?.joined ? tx.conversationDetail(found.id, account.id) : null;
    });
    if (detail) yield line({ ...detail, last_message: undefined });
    await progress(0);
  }
}

async function* messageLines(options: AccountDataOptions): AsyncGenerator<string> {
  let count = 0;
  for await (const messages of allMessages(options)) {
    count += messages.length;
    yield messages.map(line).join("");
    await options.progress(count);
  }
}

async function* allMessages(options: AccountDataOptions): AsyncGenerator<Message[]> {
  for (const { uuid } of await conversationsOf(options)) yield* messagesOf(options, uuid);
  yield* messagesInFormer(options);
}

/**
 * What the person wrote in conversations that they have left, in pages. The reactions are left out:
 * they may be from later.
 */
async function* messagesInFormer({ store, account, check }: AccountDataOptions) {
  const { id: senderId } = account;
  for (const { id: conversationId, seq } of await store.read((tx) =>
    tx.formerConversations(senderId),
  )) {
    for (let after = 0; after < seq; after += PAGE_ROWS) {
      const range = { conversationId, senderId, after, upTo: after + PAGE_ROWS };
      const page = await store.read(async (tx) => {
        await check?.(tx);
        return tx.messageViews(await tx.sentIn(range), senderId);
      });
      yield page.map((message) => ({ ...message, reactions: [] }));
    }
  }
}

/** The messages of a conversation that the person can see, oldest first, in pages. */
async function* messagesOf(options: AccountDataOptions, uuid: string): AsyncGenerator<Message[]> {
  let seq = 0;
  for (let hasMore = true; hasMore; ) {
    const page = await options.store.read((tx) => messagePage(tx, options, uuid, seq));
    yield page.items;
    hasMore = page.has_more;
    seq = page.items.at(-1)?.seq ?? seq;
  }
}

async function messagePage(
  tx: ReadTx,
  { account, check }: AccountDataOptions,
  uuid: string,
  after: number,
) {
  await check?.(tx);
  const found = await tx.conversation(uuid, account.id);
  if (!found?.joined) return { items: [], has_more: false };
  return tx.messagePage({
    conversationId: found.id,
    viewerId: account.id,
    from: { seq: after, direction: "newer" },
    limit: PAGE_ROWS,
  });
}
