import { type EventChange, messageDelta } from "../changes/change.ts";

/** Number of ended streams to remember, so that their late deltas are dropped. */
const MAX_ENDED = 10_000;

export interface Streams {
  /** Delivers an event. The parts of a stream are delivered in order; late and repeated ones are dropped. */
  receive(event: EventChange): void;
  /** Forgets the streams of a conversation that no client on this node receives any more. */
  forget(conversation: string): void;
}

export interface StreamsOptions {
  deliver(event: EventChange): void;
  /**
   * Reads the stored text of a message; null when it cannot be read. Needed where deltas can be lost
   * between nodes.
   */
  read?(message: string): Promise<string | null>;
}

/** A message that is streaming. */
interface Stream {
  /** Number of bytes of the message that were delivered here. */
  delivered: number;
  reading: boolean;
  /** Whether a delta arrived during the read that the read may not include. */
  readAgain: boolean;
}

/**
 * Makes the deltas of every streaming message add up to its final content, byte for byte, for clients
 * that received it from its beginning.
 *
 * Deltas and the end of a message may come from different nodes, and then in any order; deltas are
 * lost while nodes cannot reach each other; and a node may die after it stored a chunk and before it
 * sent it. So the delivered bytes are counted: a delta that does not continue them is dropped, a
 * missing one is read from the store, and what is still missing at the end is delivered right before
 * the end, as one last delta.
 */
export function streams({ deliver, read }: StreamsOptions): Streams {
  const open = new Map<string, Map<string, Stream>>();
  const ended = new Set<string>();

  const find = (conversation: string, message: string) => open.get(conversation)?.get(message);

  function begin(conversation: string, message: string, delivered: number): void {
    const streams = open.get(conversation) ?? new Map<string, Stream>();
    open.set(conversation, streams);
    streams.set(message, { delivered, reading: false, readAgain: false });
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

  /** Delivers missing text from the store. Deltas that arrive during a read cause another one. */
  async function catchUp(place: Place, stream: Stream): Promise<void> {
    if (!read || stream.reading) {
      stream.readAgain = true;
      return;
    }
    stream.reading = true;
    do {
      stream.readAgain = false;
      const content = await read(place.message);
      if (find(place.conversation, place.message) !== stream) return;
      if (content !== null) deliverUpTo(place, stream, content);
    } while (stream.readAgain);
    stream.reading = false;
  }

  return {
    receive(event) {
      const { stream: part, to } = event;
      if (!part || !("conversation" in to)) return deliver(event);
      const place = { conversation: to.conversation, message: part.message };
      const stream = find(place.conversation, place.message);
      if (part.begins) {
        // Starts after the text that the event shows, even if a delta arrived earlier: clients need
        // the rest of the text after this event. A replayed event shows the text so far.
        begin(place.conversation, place.message, Buffer.byteLength(contentOf(event)));
        deliver(event);
      } else if (part.ends) {
        if (stream && stream.delivered < part.to) deliverUpTo(place, stream, contentOf(event));
        end(place.conversation, place.message);
        deliver(event);
      } else if (ended.has(place.message)) {
        return;
      } else if (!stream) {
        begin(place.conversation, place.message, part.to);
        deliver(event);
      } else if (part.from === stream.delivered && !stream.reading) {
        stream.delivered = part.to;
        deliver(event);
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

/** The content in the event that begins or ends a stream; none where the message was deleted before a replay. */
const contentOf = ({ data }: EventChange): string =>
  (JSON.parse(data) as { params: { content?: string } }).params.content ?? "";
