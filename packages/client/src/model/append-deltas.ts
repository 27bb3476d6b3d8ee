import type { Message } from "@parley/protocol";

/** A piece of a streaming message. `offset` is the message's length in bytes after appending it. */
export interface Delta {
  readonly delta: string;
  readonly offset: number;
}

const encoder = new TextEncoder();
// Without `ignoreBOM` the decoder would drop a byte order mark at the start of a delta.
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** Byte lengths of streaming messages, so that appending a delta does not encode the whole text again. */
const lengths = new WeakMap<Message, number>();

export function byteLength(message: Message): number {
  const known = lengths.get(message);
  if (known !== undefined) return known;
  const length = encoder.encode(message.content).length;
  lengths.set(message, length);
  return length;
}

/**
 * Appends the deltas that continue the message. They may be duplicates and in any order. `early` has
 * those that leave a gap before them.
 */
export function appendDeltas<Known extends Message>(
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
