import { anyText } from "@parley/protocol/text/fields";
import type { z } from "zod";
import type { Limits } from "../config/limits.ts";
import { badField } from "../rules/failure.ts";
import type { ReadTx } from "../store/store.ts";

/** Encodes places in a list as cursors, which are opaque to clients. */
export function createCursor<Schema extends z.ZodType>(schema: Schema) {
  return {
    encode: (place: z.input<Schema>): string =>
      Buffer.from(JSON.stringify(place)).toString("base64url"),
    decode: (cursor: string | undefined): z.output<Schema> | undefined => {
      if (cursor === undefined) return undefined;
      const parsed = schema.safeParse(decodeJson(cursor));
      if (!parsed.success) throw badField("cursor", "is not a cursor of this list");
      return parsed.data;
    },
  };
}

function decodeJson(cursor: string): unknown {
  try {
    return JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"), storable);
  } catch {
    // Not JSON, or with text that no item has: the caller reports an invalid cursor.
    return undefined;
  }
}

/** Cursors come from clients. Throws if PostgreSQL cannot read the text in one. */
const storable = (_: string, value: unknown) =>
  typeof value === "string" ? anyText.parse(value) : value;

/** The most that a page may have. */
export interface PageBounds {
  readonly limit: number;
  /** Of the items as JSON. A page has at least one item, however large it is. */
  readonly bytes: number;
}

const DEFAULT_PAGE_SIZE = 50;

type PageLimits = Pick<Limits, "page_size" | "page_bytes">;

/** The requested number of items, at most `page_size`, in at most `page_bytes`. */
export const pageBounds = (
  requested: number | undefined,
  { page_size, page_bytes }: PageLimits,
): PageBounds => ({
  limit: Math.min(requested ?? DEFAULT_PAGE_SIZE, page_size),
  bytes: page_bytes,
});

/** Makes a page of a query for `limit + 1` items: the extra item only shows that there is a next page. */
export function pageOf<Item>(
  found: readonly Item[],
  { limit, bytes }: PageBounds,
  cursor: (last: Item) => string,
): { items: Item[]; next_cursor: string | null } {
  const items = fitting(found.slice(0, limit), bytes);
  const last = items.at(-1);
  const hasMore = found.length > items.length && last !== undefined;
  return { items, next_cursor: hasMore ? cursor(last) : null };
}

/**
 * Reads which page of a list a call asks for: the place after which it begins, the `limit` of a query
 * for it, and a function that makes it of what was found.
 */
export function createPages<Schema extends z.ZodType, Item>(
  schema: Schema,
  placeOf: (item: Item) => z.input<Schema>,
) {
  const { encode, decode } = createCursor(schema);
  return (
    { limit, cursor }: { limit?: number | undefined; cursor?: string | undefined },
    config: { readonly limits: PageLimits },
  ) => {
    const bounds = pageBounds(limit, config.limits);
    return {
      after: decode(cursor),
      limit: bounds.limit + 1,
      of: <Found extends Item>(found: readonly Found[]) =>
        pageOf(found, bounds, (last) => encode(placeOf(last))),
    };
  };
}

/** The first items that have at most so many bytes as JSON together; at least one, if there is one. */
export function fitting<Item>(items: readonly Item[], bytes: number): Item[] {
  let left = bytes;
  const end = items.findIndex((item, index) => {
    left -= jsonBytes(item);
    return left < 0 && index > 0;
  });
  return end === -1 ? [...items] : items.slice(0, end);
}

/** The length of a value as JSON in UTF-8, with the comma after it. */
export const jsonBytes = (value: unknown): number =>
  Buffer.byteLength(JSON.stringify(value) ?? "null") + 1;

/** Whose view of which conversation, and how many messages of it. */
export interface PageView extends PageBounds {
  readonly conversationId: number;
  readonly viewerId: number;
}

/** Greater than every `seq`. */
const END = Number.MAX_SAFE_INTEGER;
/** There can be any number of changes among the messages of a page: this bounds the result. */
const CHANGES_PER_PAGE = 500;

/**
 * The messages before a place in the conversation; the latest ones without a place. Pages of messages
 * are oldest first, with the changes of the group among them.
 */
export async function pageBefore(tx: ReadTx, view: PageView, seq = END) {
  const { from, ...page } = await older(tx, view, seq);
  return { ...page, changes: await changesBetween(tx, view, from, seq) };
}

/** The messages after a place in the conversation. */
export async function pageAfter(tx: ReadTx, view: PageView, seq: number) {
  const { to, ...page } = await newer(tx, view, seq);
  return { ...page, changes: await changesBetween(tx, view, seq, to) };
}

/** The message at a place in the conversation, with about half of the page before it. */
export async function pageAround(tx: ReadTx, view: PageView, seq: number) {
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

const changesBetween = (tx: ReadTx, view: PageView, after: number, before: number) => {
  const { conversationId, viewerId } = view;
  return tx.conversationChanges({
    conversationId,
    viewerId,
    after,
    before,
    limit: CHANGES_PER_PAGE,
  });
};
