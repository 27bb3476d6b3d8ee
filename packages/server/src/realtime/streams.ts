import { type EventChange, messageDelta } from "../changes/change.ts";

/** Ended streams are remembered so that their late deltas are dropped: the latest this many. */
const MAX_ENDED = 10_000;

export interface Streams {
  /** Delivers a packet. One that is part of a stream is delivered in its place, or dropped. */
  receive(packet: EventChange): void;
  /** Nobody here hears the conversation any more: what its streams had delivered does not count. */
  forget(conversation: string): void;
}

export interface StreamsOptions {
  deliver(packet: EventChange): void;
  /**
   * Reads the text of a message as it is stored; null when it cannot be read. Needed where deltas
   * can be lost on their way.
   */
  read?(message: string): Promise<string | null>;
}

/** An answer that is streaming. */
interface Stream {
  /** Bytes of its message that were delivered here. */
  delivered: number;
  reading: boolean;
  /** Whether a delta has come, while the store was read, that may not be in what was read. */
  again: boolean;
}

/**
 * Makes the deltas of every answer add up to its final content, byte for byte, for whoever has heard
 * the answer from its beginning.
 *
 * Deltas and the end of an answer may come from different nodes, and then in any order; deltas are
 * lost while nodes cannot reach each other; and a node may die after it has stored a piece and
 * before it has sent it. So what was delivered here is counted: a delta that does not continue it is
 * dropped, a missing one is read from the store, and what is still missing at the end is delivered
 * right before the end, as one last delta.
 */
export function streams({ deliver, read }: StreamsOptions): Streams {
  const open = new Map<string, Map<string, Stream>>();
  const ended = new Set<string>();

  const find = (conversation: string, message: string) => open.get(conversation)?.get(message);

  function begin(conversation: string, message: string, delivered: number): void {
    const streams = open.get(conversation) ?? new Map<string, Stream>();
    open.set(conversation, streams);
    streams.set(message, { delivered, reading: false, again: false });
  }

  function end(conversation: string, message: string): void {
    const streams = open.get(conversation);
    streams?.delete(message);
    if (streams?.size === 0) open.delete(conversation);
    ended.add(message);
    for (const oldest of ended) {
      if (ended.size <= MAX_ENDED) break;
      ended.delete(oldest);
    }
  }

  function deliverUpTo(place: Place, stream: Stream, content: string): void {
    const bytes = Buffer.from(content);
    if (bytes.length <= stream.delivered) return;
    const delta = bytes.subarray(stream.delivered).toString();
    stream.delivered = bytes.length;
    deliver(messageDelta(place.message, place.conversation, delta, bytes.length));
  }

  /** Reads what is missing. Deltas that come meanwhile are in the store already, or read again. */
  async function catchUp(place: Place, stream: Stream): Promise<void> {
    if (!read || stream.reading) {
      stream.again = true;
      return;
    }
    stream.reading = true;
    do {
      stream.again = false;
      const content = await read(place.message);
      if (find(place.conversation, place.message) !== stream) return;
      if (content !== null) deliverUpTo(place, stream, content);
    } while (stream.again);
    stream.reading = false;
  }

  return {
    receive(packet) {
      const { stream: part, to } = packet;
      if (!part || !("conversation" in to)) return deliver(packet);
      const place = { conversation: to.conversation, message: part.message };
      const stream = find(place.conversation, place.message);
      if (part.begins) {
        // A delta may have overtaken it: whoever hears an answer from here on hears all of it.
        begin(place.conversation, place.message, 0);
        deliver(packet);
      } else if (part.ends) {
        if (stream && stream.delivered < part.to) deliverUpTo(place, stream, contentOf(packet));
        end(place.conversation, place.message);
        deliver(packet);
      } else if (ended.has(place.message)) {
        return;
      } else if (!stream) {
        begin(place.conversation, place.message, part.to);
        deliver(packet);
      } else if (part.from === stream.delivered && !stream.reading) {
        stream.delivered = part.to;
        deliver(packet);
      } else if (part.to > stream.delivered) {
        void catchUp(place, stream);
      }
    },
    forget: (conversation) => void open.delete(conversation),
  };
}

interface Place {
  readonly conversation: string;
  readonly message: string;
}

/** Of a packet that ends a stream. */
const contentOf = ({ data }: EventChange): string =>
  (JSON.parse(data) as { params: { content: string } }).params.content;
