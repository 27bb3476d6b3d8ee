import type { Message } from "@parley/protocol";

/** A chunk of a streaming message; `offset` is the length in bytes after appending it. */
export interface Delta {
  readonly delta: string;
  readonly offset: number;
}

const encoder = new TextEncoder();
// Otherwise a byte order mark at the beginning of a piece would be taken for one of the text.
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** Lengths of texts that grow chunk by chunk, so that each chunk costs its own length only. */
const lengths = new WeakMap<Message, number>();

export function byteLength(message: Message): number {
  const known = lengths.get(message);
  if (known !== undefined) return known;
  const length = encoder.encode(message.content).length;
  lengths.set(message, length);
  return length;
}

/**
 * The message with the chunks that continue it, whatever their order and however often they came,
 * and the chunks that do not fit because something before them is missing.
 */
export function append<Known extends Message>(
  message: Known,
  deltas: readonly Delta[],
): { message: Known; early: readonly Delta[] } {
  let { content } = message;
  let length = byteLength(message);
  const early: Delta[] = [];
  for (const each of deltas.toSorted((one, other) => one.offset - other.offset)) {
    if (each.offset <= length) continue;
    const bytes = encoder.encode(each.delta);
    const start = each.offset - bytes.length;
    if (start > length) {
      if (early.at(-1)?.offset !== each.offset) early.push(each);
      continue;
    }
    content += start === length ? each.delta : decoder.decode(bytes.subarray(length - start));
    length = each.offset;
  }
  if (content === message.content) return { message, early };
  const longer = { ...message, content };
  lengths.set(longer, length);
  return { message: longer, early };
}
