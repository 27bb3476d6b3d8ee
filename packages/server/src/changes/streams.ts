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

/** A message that is streaming. */
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
export class Streams {
  readonly #options: StreamsOptions;
  /** Messages that are streaming, by conversation and message. */
  readonly #open = new Map<string, Map<string, Stream>>();
  readonly #ended = new Set<string>();

  constructor(options: StreamsOptions) {
    this.#options = options;
  }

  /** Delivers an event. The parts of a stream are delivered in order; late and repeated ones are dropped. */
  receive(event: EventChange): void {
    const { stream: part, to } = event;
    if (!part || !("conversation" in to)) {
      this.#options.deliver(event);
      return;
    }
    const place = { conversation: to.conversation, message: part.message };
    if (part.begins) this.#receiveStart(place, event);
    else if (part.ends) this.#receiveEnd(place, event, part.to);
    else if (!this.#ended.has(part.message)) this.#receiveDelta(place, event, part);
  }

  /**
   * Delivers the stored text of the streams that received nothing since the last call: for a node that
   * others cannot send their deltas to.
   */
  readStored(): void {
    for (const [conversation, messages] of this.#open) {
      for (const [message, stream] of messages) {
        if (!stream.isFresh && !stream.reading)
          void this.#catchUp({ conversation, message }, stream);
        stream.isFresh = false;
      }
    }
  }

  /** Forgets the streams of a conversation that no client on this node receives any more. */
  forget(conversation: string): void {
    this.#open.delete(conversation);
  }

  /**
   * Counts from the text that the event shows, even if a delta arrived earlier: clients need the rest
   * of the text after this event.
   */
  #receiveStart(place: Place, event: EventChange): void {
    this.#begin(place, Buffer.byteLength(contentOf(event)));
    this.#options.deliver(event);
  }

  #receiveEnd(place: Place, event: EventChange, length: number): void {
    const stream = this.#find(place);
    if (stream && stream.delivered < length) this.#deliverUpTo(place, stream, contentOf(event));
    this.#end(place);
    this.#options.deliver(event);
  }

  #receiveDelta(place: Place, event: EventChange, { from, to }: StreamPart): void {
    const stream = this.#find(place);
    if (!stream) {
      this.#begin(place, to);
      this.#options.deliver(event);
    } else if (from === stream.delivered && !stream.reading) {
      stream.delivered = to;
      stream.isFresh = true;
      this.#options.deliver(event);
    } else if (to > stream.delivered) {
      void this.#catchUp(place, stream);
    }
  }

  /** Delivers missing text from the store. Deltas that arrive during a read cause another one. */
  async #catchUp(place: Place, stream: Stream): Promise<void> {
    const { read } = this.#options;
    if (!read || stream.reading) {
      stream.readAgain = true;
      return;
    }
    stream.reading = true;
    do {
      stream.readAgain = false;
      const content = await read(place.message);
      if (this.#find(place) !== stream) return;
      if (content !== null) this.#deliverUpTo(place, stream, content);
    } while (stream.readAgain);
    stream.reading = false;
  }

  /** Delivers what is missing of the content so far, as one delta. */
  #deliverUpTo({ message, conversation }: Place, stream: Stream, content: string): void {
    const bytes = Buffer.from(content);
    if (bytes.length <= stream.delivered) return;
    const delta = bytes.subarray(stream.delivered).toString();
    stream.delivered = bytes.length;
    this.#options.deliver(messageDelta(message, conversation, delta, bytes.length));
  }

  #find({ conversation, message }: Place): Stream | undefined {
    return this.#open.get(conversation)?.get(message);
  }

  #begin({ conversation, message }: Place, delivered: number): void {
    const streams = this.#open.get(conversation) ?? new Map<string, Stream>();
    this.#open.set(conversation, streams);
    streams.set(message, { delivered, reading: false, readAgain: false, isFresh: true });
  }

  #end({ conversation, message }: Place): void {
    const streams = this.#open.get(conversation);
    streams?.delete(message);
    if (streams?.size === 0) this.#open.delete(conversation);
    this.#ended.add(message);
    for (const oldest of this.#ended) {
      if (this.#ended.size <= MAX_ENDED) break;
      this.#ended.delete(oldest);
    }
  }
}

interface Place {
  readonly conversation: string;
  readonly message: string;
}

/** The content in the event that begins or ends a stream; empty if the message was deleted before a replay. */
const contentOf = ({ data }: EventChange): string =>
  (JSON.parse(data) as { params: { content?: string } }).params.content ?? "";
