import { anyText } from "@parley/protocol/text/fields";
import type { z } from "zod";
import { badField } from "../rules/failure.ts";

/** Encodes places in a list as cursors, which are opaque to clients. */
export function cursorOf<Schema extends z.ZodType>(schema: Schema) {
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

/** Makes a page of a query for `limit + 1` items: the extra item only shows that there is a next page. */
export function pageOf<Item>(
  found: readonly Item[],
  limit: number,
  cursor: (last: Item) => string,
): { items: Item[]; next_cursor: string | null } {
  const items = found.slice(0, limit);
  const last = items.at(-1);
  const hasMore = found.length > limit && last !== undefined;
  return { items, next_cursor: hasMore ? cursor(last) : null };
}

const DEFAULT_PAGE_SIZE = 50;

/** How many items to return: the requested number, at most `page_size`. */
export const pageSize = (requested: number | undefined, { page_size }: { page_size: number }) =>
  Math.min(requested ?? DEFAULT_PAGE_SIZE, page_size);
