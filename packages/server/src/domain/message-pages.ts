import type { ConversationChange, Message } from "@parley/protocol";
import type { ReadTx } from "../store/store.ts";
import { fitting } from "./pagination.ts";

/** Whose view of which conversation, and how many messages of it. */
export interface PageView {
  readonly conversationId: number;
  readonly viewerId: number;
  readonly limit: number;
  /** Of the messages as JSON. A page has at least one message. */
  readonly bytes: number;
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
  const bytes = Math.floor(view.bytes / 2);
  const before = await older(tx, { ...view, limit: Math.floor(view.limit / 2), bytes }, seq);
  const limit = view.limit - before.items.length;
  const after = await newer(tx, { ...view, limit, bytes }, seq - 1);
  return {
    items: [...before.items, ...after.items],
    has_more: before.has_more || after.has_more,
    changes: await changesBetween(tx, view, before.from, after.to),
  };
}

/** `from` is the place after which the page's changes begin: 0 if it is the first page. A page may be empty. */
async function older(tx: ReadTx, view: PageView, seq: number) {
  const found = await tx.messagePage({ ...view, from: { seq, direction: "older" } });
  const items = fitting(found.items.toReversed(), view.bytes).reverse();
  const has_more = found.has_more || items.length < found.items.length;
  return { items, has_more, from: has_more ? (items[0]?.seq ?? seq) : 0 };
}

/** `to` is the place before which the page's changes end: the end if it is the last page. */
async function newer(tx: ReadTx, view: PageView, seq: number) {
  const found = await tx.messagePage({ ...view, from: { seq, direction: "newer" } });
  const items = fitting(found.items, view.bytes);
  const has_more = found.has_more || items.length < found.items.length;
  return { items, has_more, to: has_more ? (items.at(-1)?.seq ?? END) : END };
}

const changesBetween = (tx: ReadTx, { conversationId }: PageView, after: number, before: number) =>
  tx.conversationChanges({ conversationId, after, before, limit: CHANGES_PER_PAGE });
