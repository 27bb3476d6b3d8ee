import type { ConversationChange, Message } from "@parley/protocol";
import type { ReadTx } from "../store/store.ts";

/** Whose view of which conversation, and how many messages of it. */
export interface PageView {
  readonly conversationId: number;
  readonly viewerId: number;
  readonly limit: number;
}

/** A page of messages, oldest first, with the changes of the group among them. */
export interface MessagePage {
  items: Message[];
  /** Whether there are more messages in the requested direction. */
  has_more: boolean;
  changes: ConversationChange[];
}

/** Greater than every `seq`. */
const END = Number.MAX_SAFE_INTEGER;
/** There can be any number of changes among the messages of a page: this bounds the result. */
const CHANGES_PER_PAGE = 500;

/** The messages before a place in the conversation; the latest ones without a place. */
export async function pageBefore(tx: ReadTx, view: PageView, seq = END): Promise<MessagePage> {
  const { from, ...page } = await older(tx, view, seq);
  return { ...page, changes: await changesBetween(tx, view, from, seq) };
}

/** The messages after a place in the conversation. */
export async function pageAfter(tx: ReadTx, view: PageView, seq: number): Promise<MessagePage> {
  const { to, ...page } = await newer(tx, view, seq);
  return { ...page, changes: await changesBetween(tx, view, seq, to) };
}

/** The message at a place in the conversation, with about half of the page before it. */
export async function pageAround(tx: ReadTx, view: PageView, seq: number): Promise<MessagePage> {
  const before = await older(tx, { ...view, limit: Math.floor(view.limit / 2) }, seq);
  const after = await newer(tx, { ...view, limit: view.limit - before.items.length }, seq - 1);
  return {
    items: [...before.items, ...after.items],
    has_more: before.has_more || after.has_more,
    changes: await changesBetween(tx, view, before.from, after.to),
  };
}

/** `from` is the place after which the page's changes begin: 0 if it is the first page. A page may be empty. */
async function older(tx: ReadTx, view: PageView, seq: number) {
  const page = await tx.messagePage({ ...view, from: { seq, direction: "older" } });
  return { ...page, from: page.has_more ? (page.items[0]?.seq ?? seq) : 0 };
}

/** `to` is the place before which the page's changes end: the end if it is the last page. */
async function newer(tx: ReadTx, view: PageView, seq: number) {
  const page = await tx.messagePage({ ...view, from: { seq, direction: "newer" } });
  return { ...page, to: page.has_more ? (page.items.at(-1)?.seq ?? END) : END };
}

const changesBetween = (tx: ReadTx, { conversationId }: PageView, after: number, before: number) =>
  tx.conversationChanges({ conversationId, after, before, limit: CHANGES_PER_PAGE });
