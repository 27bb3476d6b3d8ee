import { Readable } from "node:stream";
import type { Message } from "@parley/protocol";
import { publicAccount } from "../../rules/accounts.ts";
import { agentIdentity } from "../../rules/agents.ts";
import { iso, isoOrNull } from "../../rules/time.ts";
import type { AccountRecord } from "../../store/accounts.ts";
import type { Awaitable } from "../../store/awaitable.ts";
import { FIRST_FILE, type FileRecord } from "../../store/files.ts";
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

export interface AccountDataOptions {
  readonly store: Pick<Store, "read">;
  /** Null if the server takes no files. */
  readonly blobs: Pick<Blobs, "open"> | null;
  readonly account: AccountRecord;
  /** Called in every read. Throws to stop. */
  readonly check?: (tx: ReadTx) => Promise<void>;
  /** Called between two reads, with the number of messages of the former. May throw to stop. */
  readonly progress: (messages: number) => unknown;
}

/** The data of an account: it is read in small steps, and only the current page is in memory. */
interface Source extends Pick<AccountDataOptions, "account" | "blobs" | "progress"> {
  read<Result>(unit: (tx: ReadTx) => Awaitable<Result>): Promise<Result>;
}

type Pages<Item = unknown> = AsyncGenerator<readonly Item[]>;

/**
 * Everything the service has of a person, as files of JSON Lines, and the files that the person has
 * uploaded. It is read while the files are written.
 */
export async function* accountData(options: AccountDataOptions): AsyncGenerator<ZipEntry> {
  const { store, account, check, progress } = options;
  const { id, username } = account;
  const source: Source = {
    ...options,
    read: (unit) =>
      store.read(async (tx) => {
        await check?.(tx);
        return unit(tx);
      }),
  };
  const file = (name: string, pages: Pages, messagesIn = (_: readonly unknown[]) => 0) => ({
    name: `${name}.jsonl`,
    content: linesOf(pages, (page) => progress(messagesIn(page))),
  });
  async function* onePage(unit: (tx: ReadTx) => Awaitable<readonly unknown[]>): Pages {
    yield await source.read(unit);
  }
  const list = (name: string, unit: Parameters<typeof onePage>[0]) => file(name, onePage(unit));
  yield { name: "README.txt", content: Readable.from([README]) };
  yield list("account", (tx) => accountRecord(tx, account));
  yield list("sessions", (tx) => tx.sessions(id, Date.now()));
  yield list("agents", (tx) => agentRecords(tx, id));
  yield list("tool-servers", async (tx) => (await tx.toolServers(id)).map(toolServerRecord));
  yield list("usage", (tx) => tx.usage(id, null, null));
  yield list("blocked", async (tx) => {
    const { usernames } = await tx.blockList(id);
    return usernames.map((blocked) => ({ username: blocked }));
  });
  yield list("incoming-hooks", async (tx) => (await tx.incomingHooksBy(username)).map(hookRecord));
  yield list("webhooks", async (tx) => {
    const own = (await tx.webhooks()).filter(({ creator }) => creator === username);
    return own.map(webhookRecord);
  });
  const reports = (tx: ReadTx, last?: ReportRecord) =>
    tx.reports({ reporterId: id, before: last?.id, limit: PAGE_ROWS });
  yield file("reports", pagesOf(source, reports, ownReport));
  yield file("conversations", conversations(source));
  yield file("messages", messages(source), (page) => page.length);
  const reactions = (tx: ReadTx, last?: ReactionRecord) =>
    tx.reactionsBy({ accountId: id, after: last?.place ?? 0, limit: PAGE_ROWS });
  yield file("reactions", pagesOf(source, reactions, ownReaction));
  yield* uploadedFiles(source);
}

const README = `Your data, as JSON Lines: each line of a file is one JSON object, in UTF-8.

account.jsonl        your account, who may add you to conversations (added_by), and when you were
                     last online (last_seen_at), which others are told roughly unless presence is hidden
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

async function* linesOf(pages: Pages, progress: (page: readonly unknown[]) => unknown) {
  for await (const page of pages) {
    yield page.map((item) => `${JSON.stringify(item)}\n`).join("");
    await progress(page);
  }
}

/** A list that is read in pages. `unit` gets the last item of the page before. */
async function* pagesOf<Item, Shown = Item>(
  { read }: Source,
  unit: (tx: ReadTx, last?: Item) => Awaitable<readonly Item[]>,
  shown: (item: Item) => Shown,
): Pages<Shown> {
  let last: Item | undefined;
  do {
    const after = last;
    const page = await read((tx) => unit(tx, after));
    yield page.map(shown);
    last = page.length < PAGE_ROWS ? undefined : page.at(-1);
  } while (last !== undefined);
}

async function accountRecord(tx: ReadTx, { id, username }: AccountRecord): Promise<unknown[]> {
  const found = await tx.managedAccounts({ username, limit: 1 });
  const added_by = await tx.addedBy(id);
  const presence = await tx.presenceSetting(id);
  const seenAt = await tx.lastSeen(id);
  const [avatar] = await tx.avatars([id]);
  return found.map((account) => ({
    username,
    display_name: account.display_name,
    external_id: account.external_id,
    metadata: account.metadata ?? {},
    created_at: iso(account.created_at),
    is_operator: account.is_operator,
    added_by,
    presence,
    last_seen_at: isoOrNull(seenAt),
    picture_id: avatar?.file_id ?? null,
  }));
}

async function agentRecords(tx: ReadTx, ownerId: number): Promise<unknown[]> {
  const agents: unknown[] = [];
  for (const { account, model, instructions, limits, sealed_key } of await tx.agents(ownerId)) {
    agents.push({
      ...publicAccount(account),
      ...agentIdentity(account),
      model,
      instructions,
      limits,
      key_configured: sealed_key !== null,
      tools: await tx.toolGrants(account.id),
    });
  }
  return agents;
}

const toolServerRecord = ({ secrets, owner_id, created_at, ...server }: ToolServerRecord) => ({
  ...server,
  created_at: iso(created_at),
});

const hookRecord = ({ id, name, chat, account, created_at }: IncomingHookRecord) => ({
  id,
  name,
  chat_id: chat,
  account,
  created_at: iso(created_at),
});

const webhookRecord = ({ id, url, events, chat, disabled, created_at }: WebhookRecord) => ({
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
  resolved_at: isoOrNull(resolved_at),
});

const ownReaction = ({ place: _, created_at, ...reaction }: ReactionRecord) => ({
  ...reaction,
  created_at: iso(created_at),
});

async function* conversations({ read, account: { id } }: Source): Pages {
  for (const { uuid } of await read((tx) => tx.counters(id))) {
    yield await read(async (tx) => {
      const found = await tx.conversation(uuid, id);
      const detail = found?.joined ? await tx.conversationDetail(found.id, id) : null;
      return detail ? [{ ...detail, last_message: undefined }] : [];
    });
  }
}

/** The messages that the person can see, oldest first in each conversation. */
async function* messages(source: Source): Pages<Message> {
  const { read, account } = source;
  for (const { uuid } of await read((tx) => tx.counters(account.id))) {
    const page = async (tx: ReadTx, last?: Message) => {
      const found = await tx.conversation(uuid, account.id);
      if (!found?.joined) return [];
      const from = { seq: last?.seq ?? 0, direction: "newer" as const };
      const range = { conversationId: found.id, viewerId: account.id, from, limit: PAGE_ROWS };
      return (await tx.messagePage(range)).items;
    };
    yield* pagesOf(source, page, asItIs);
  }
  yield* messagesInFormer(source);
}

const asItIs = <Item>(item: Item) => item;

/** What the person wrote in conversations that they have left, without reactions: they may be later. */
async function* messagesInFormer({ read, account: { id: senderId } }: Source): Pages<Message> {
  const former = await read((tx) => tx.formerConversations(senderId));
  for (const { id: conversationId, seq } of former) {
    for (let after = 0; after < seq; after += PAGE_ROWS) {
      const range = { conversationId, senderId, after, upTo: after + PAGE_ROWS };
      const page = await read(async (tx) => tx.messageViews(await tx.sentIn(range), senderId));
      yield page.map((message) => ({ ...message, reactions: [] }));
    }
  }
}

async function* uploadedFiles(source: Source): AsyncGenerator<ZipEntry> {
  const { blobs, account, progress } = source;
  if (!blobs) return;
  const files = (tx: ReadTx, last?: FileRecord) =>
    tx.filesOf(account.id, last?.id ?? FIRST_FILE, PAGE_ROWS);
  for await (const page of pagesOf(source, files, asItIs)) {
    for (const { id, name, blob } of page) {
      await progress(0);
      const found = blob && (await blobs.open(blob));
      // It was deleted meanwhile, or its bytes are missing.
      if (!found) continue;
      const content = bytesOf(await found.stream(), () => progress(0));
      yield { name: `files/${id}-${name}`, content, isCompressed: true };
    }
  }
}

async function* bytesOf(stream: ReadableStream<Uint8Array>, progress: () => unknown) {
  for await (const chunk of stream) {
    yield chunk;
    await progress();
  }
}
