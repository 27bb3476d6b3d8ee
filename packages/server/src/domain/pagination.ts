import type { z } from "zod";
import { badField } from "../rules/failure.ts";

/** Places in a list, opaque to clients. */
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
    return JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
  } catch {
    return undefined;
  }
}

/** Cuts the one item too many that tells whether there is a next page. */
export function pageOf<Item>(
  found: readonly Item[],
  limit: number,
  cursor: (last: Item) => string,
): { items: Item[]; next_cursor: string | null } {
  const items = found.slice(0, limit);
  const last = items.at(-1);
  const more = found.length > limit && last !== undefined;
  return { items, next_cursor: more ? cursor(last) : null };
}

const DEFAULT_PAGE = 50;

/** How many items to return: what was asked for, within the limit in force. */
export const pageSize = (asked: number | undefined, { page_size }: { page_size: number }) =>
  Math.min(asked ?? DEFAULT_PAGE, page_size);
