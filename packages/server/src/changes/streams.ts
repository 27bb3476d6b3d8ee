import { type EventChange, messageDelta, type StreamPart } from "./change.ts";

/** Number of ended streams to remember, so that their late deltas are dropped. */
const MAX_ENDED = 10_000;

export interface StreamsOptions {
  deliver(event: EventChange): void;
  /**
   * Reads the stored text of a message; null when it cannot be read. Needed where deltas can be lost
   * between nodes.
   */
  read?(message: string): Promise<string | null>;
}

interface Stream {
  /** Number of bytes of the message that were delivered here. */
  delivered: number;
  reading: boolean;
  /** Whether a delta was delivered since the last `readStored`. */
  isFresh: boolean;
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
export function createStreams({ deliver, read }: StreamsOptions) {
  /** Messages that are streaming, by conversation and message. */
  const open = new Map<string, Map<string, Stream>>();
  const ended = new Set<string>();

  /**
   * Counts from the text that the event shows, even if a delta arrived earlier: clients need the rest
   * of the text after this event.
   */
  function receiveStart(place: Place, event: EventChange): void {
    begin(place, Buffer.byteLength(contentOf(event)));
    deliver(event);
  }

  function receiveEnd(place: Place, event: EventChange, length: number): void {
    const stream = find(place);
    if (stream && stream.delivered < length) deliverUpTo(place, stream, contentOf(event));
    end(place);
    deliver(event);
  }

  function receiveDelta(place: Place, event: EventChange, { from, to }: StreamPart): void {
    const stream = find(place);
    if (!stream) {
      begin(place, to);
      deliver(event);
    } else if (from === stream.delivered && !stream.reading) {
      stream.delivered = to;
      stream.isFresh = true;
      deliver(event);
    } else if (to > stream.delivered) {
      void catchUp(place, stream);
    }
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
      if (find(place) !== stream) return;
      if (content !== null) deliverUpTo(place, stream, content);
    } while (stream.readAgain);
    stream.reading = false;
  }

  /** Delivers what is missing of the content so far, as one delta. */
  function deliverUpTo({ message, conversation }: Place, stream: Stream, content: string): void {
    const bytes = Buffer.from(content);
    if (bytes.length <= stream.delivered) return;
    const delta = bytes.subarray(stream.delivered).toString();
    stream.delivered = bytes.length;
    deliver(messageDelta(message, conversation, delta, bytes.length));
  }

  function find({ conversation, message }: Place): Stream | undefined {
    return open.get(conversation)?.get(message);
  }

  function begin({ conversation, message }: Place, delivered: number): void {
    const streams = open.get(conversation) ?? new Map<string, Stream>();
    open.set(conversation, streams);
    streams.set(message, { delivered, reading: false, readAgain: false, isFresh: true });
  }

  function end({ conversation, message }: Place): void {
    const streams = open.get(conversation);
    streams?.delete(message);
    if (streams?.size === 0) open.delete(conversation);
    ended.add(message);
    for (const oldest of ended) {
      if (ended.size <= MAX_ENDED) break;
      ended.delete(oldest);
    }
  }

  return {
    /** Delivers an event. The parts of a stream are delivered in order; late and repeated ones are dropped. */
    receive(event: EventChange): void {
      const { stream: part, to } = event;
      if (!part || !("conversation" in to)) {
        deliver(event);
        return;
      }
      const place = { conversation: to.conversation, message: part.message };
      if (part.begins) receiveStart(place, event);
      else if (part.ends) receiveEnd(place, event, part.to);
      else if (!ended.has(part.message)) receiveDelta(place, event, part);
    },
    /**
     * Delivers the stored text of the streams that received nothing since the last call: for a node that
     * others cannot send their deltas to.
     */
    readStored(): void {
      for (const [conversation, messages] of open) {
        for (const [message, stream] of messages) {
          if (!stream.isFresh && !stream.reading) void catchUp({ conversation, message }, stream);
          stream.isFresh = false;
        }
      }
    },
    /** Forgets the streams of a conversation that no client on this node receives any more. */
    forget(conversation: string): void {
      open.delete(conversation);
    },
  };
}

interface Place {
  readonly conversation: string;
  readonly message: string;
}

/** The content in the event that begins or ends a stream; empty if the message was deleted before a replay. */
const contentOf = ({ data }: EventChange): string =>
  (JSON.parse(data) as { params: { content?: string } }).params.content ?? "";
