import type { EventPlace, SharedConversation } from "@parley/protocol";
import type { Logger } from "../observe/log.ts";
import { conversationShared, type EventChange, type Membership } from "./change.ts";
import { UnclaimedEvents } from "./unclaimed-events.ts";

/** How long to wait for a missing event before it is read from the log. */
const GAP_GRACE_MS = 20;
/** How long to wait before the log is read again, if it did not contain the event. */
const RETRY_MS = 1000;
/** How long a gap may last before clients are told to reconnect. */
const GAP_TIMEOUT_MS = 10_000;
/** How many events may wait for an earlier one, for each conversation. */
const MAX_HELD = 1000;

export interface SequencerOptions {
  deliver(change: EventChange): void;
  /** Reads the log and passes the events that this node has missed to `receive`. */
  readLog(): Promise<void>;
  /** The conversation as it is now, and which of these accounts participate in it. */
  readConversation(
    conversation: string,
    users: readonly string[],
  ): Promise<{ shared: SharedConversation; participants: readonly string[] } | null>;
  /** Events of a conversation are missing and cannot be read. */
  lost(conversation: string): void;
  /** Accounts have left a conversation by an event that is not delivered. */
  missedLeaving(leaves: Membership): void;
  log: Logger;
  gapGraceMs?: number | undefined;
  retryMs?: number | undefined;
  gapTimeoutMs?: number | undefined;
  maxHeld?: number | undefined;
}

/** The events of one conversation on their way to the sockets of this node. */
interface Track {
  readonly conversation: string;
  /** The counter value delivered last. Until it is known nothing is delivered. */
  delivered: number | undefined;
  /** The highest counter value seen. */
  newest: number;
  /** Events after the first value and up to the last were not delivered before delivery began. */
  skipped: readonly [after: number, upTo: number];
  /** Events that wait for an earlier one, in the order of arrival. */
  held: EventChange[];
  /** The counted ones among them, by counter value. */
  early: Map<number, EventChange>;
  /** Accounts whose introduction to the conversation came late. */
  newcomers: Set<string>;
  /** Whether the conversation is being read for newcomers. Meanwhile all events are held. */
  reading: boolean;
  timer: NodeJS.Timeout | undefined;
  /** When the current gap was first seen. Each delivered event closes one. */
  gapSince: number | null;
}

/**
 * Delivers the events of each conversation in the order of its counter, without gaps or duplicates,
 * from whichever node they come. A gap holds back all later events of the conversation, first for a
 * grace period in case the missing event arrives, then until the log has provided it.
 */
export class Sequencer {
  readonly #tracks = new Map<string, Track>();
  readonly #unclaimed = new UnclaimedEvents();
  readonly #options: SequencerOptions;

  constructor(options: SequencerOptions) {
    this.#options = options;
  }

  /** Starts to accept events of a conversation. `begin` says from which counter value on. */
  open(conversation: string): void {
    this.#tracks.set(conversation, {
      conversation,
      delivered: undefined,
      newest: 0,
      skipped: [0, 0],
      held: [],
      early: new Map(),
      newcomers: new Set(),
      reading: false,
      timer: undefined,
      gapSince: null,
    });
  }

  close(conversation: string): void {
    const track = this.#tracks.get(conversation);
    if (track) cancelTimer(track);
    this.#tracks.delete(conversation);
  }

  /** Delivers events after this counter value, unless a start is known already. */
  begin(conversation: string, seq: number): void {
    const track = this.#tracks.get(conversation);
    if (!track) return;
    track.newest = Math.max(track.newest, seq);
    if (track.delivered === undefined) beginDelivery(track, seq);
    if (isBehind(track)) this.#startTimer(track);
  }

  /** The counter value delivered last; undefined until it is known. */
  at(conversation: string): number | undefined {
    return this.#tracks.get(conversation)?.delivered;
  }

  /** Whether a counted event of the log was neither delivered nor received here. */
  isMissing({ conversation_id, seq }: EventPlace, leaves?: Membership): boolean {
    const track = this.#tracks.get(conversation_id);
    if (!track) return false;
    if (track.delivered !== undefined && seq > track.delivered) {
      return track.early.get(seq) === undefined;
    }
    track.newest = Math.max(track.newest, seq);
    this.#skip(track, seq, leaves);
    return false;
  }

  receive(change: EventChange): void {
    const track = this.#tracks.get(conversationOf(change) ?? "");
    if (!track) {
      // Nobody here participates in the conversation, but accounts may be addressed by name.
      if ("users" in change.to) this.#options.deliver(change);
      else this.#unclaimed.add(change);
      return;
    }
    track.newest = Math.max(track.newest, change.at?.seq ?? change.stream?.after ?? 0);
    if (track.delivered === undefined) {
      // A client that is about to start reads the store afterwards, which has this event.
      if (!isStanding(change)) {
        this.#skip(track, change.at?.seq ?? 0, change.leaves);
        return;
      }
      beginDelivery(track, 0);
    }
    if (!track.reading && track.held.length === 0 && this.#step(track, change)) {
      if (track.newcomers.size > 0) void this.#readForNewcomers(track);
      return;
    }
    this.#hold(track, change);
    if (!track.reading) this.#advance(track);
  }

  /** Delivers what this node published in a conversation before somebody here was introduced to it. */
  claim(conversation: string): void {
    for (const change of this.#unclaimed.take(conversation)) this.receive(change);
  }

  /** Introduces accounts to a conversation as it is now, if they still participate in it. */
  async introduce(conversation: string, users: readonly string[]): Promise<void> {
    const track = this.#tracks.get(conversation);
    if (track?.delivered !== undefined) {
      for (const user of users) track.newcomers.add(user);
      return this.#readForNewcomers(track);
    }
    const introduction = await this.#introductionOf(conversation, users);
    if (introduction) this.receive(introduction);
  }

  /** What introduces those of the accounts that participate; null if none does. */
  async #introductionOf(conversation: string, users: readonly string[]) {
    const found = await this.#options.readConversation(conversation, users);
    if (!found || found.participants.length === 0) return null;
    return conversationShared(found.shared, found.participants);
  }

  stop(): void {
    for (const track of this.#tracks.values()) cancelTimer(track);
    this.#tracks.clear();
  }

  /** Delivers an event that is due and drops one that is past. False when it has to wait. */
  #step(track: Track, change: EventChange): boolean {
    const delivered = track.delivered ?? 0;
    if (!change.at) {
      if ((change.stream?.after ?? 0) > delivered) return false;
      this.#options.deliver(change);
      return true;
    }
    const { seq } = change.at;
    if (!isStanding(change)) {
      if (seq > delivered + 1) return false;
      if (seq === delivered + 1) this.#deliverCounted(track, change, seq);
      else this.#skip(track, seq, change.leaves);
      return true;
    }
    if (seq > delivered) return false;
    if (seq === delivered) this.#options.deliver(change);
    else if ("users" in change.to) for (const user of change.to.users) track.newcomers.add(user);
    return true;
  }

  /**
   * Reports who has left by an event that is not delivered here. Clients that are about to start may have
   * read their conversations before it, and those that have started since still receive the conversation.
   */
  #skip({ delivered, skipped }: Track, seq: number, leaves: Membership | undefined): void {
    const [after, upTo] = skipped;
    if (!leaves || (delivered !== undefined && (seq <= after || seq > upTo))) return;
    this.#options.missedLeaving(leaves);
  }

  #deliverCounted(track: Track, change: EventChange, seq: number): void {
    track.delivered = seq;
    track.gapSince = null;
    track.early.delete(seq);
    this.#options.deliver(change);
  }

  #hold(track: Track, change: EventChange): void {
    if (track.held.length >= (this.#options.maxHeld ?? MAX_HELD)) {
      this.#lose(track, "conversation events lost: too many wait for a missing one");
      return;
    }
    track.held.push(change);
    if (change.at && !isStanding(change)) track.early.set(change.at.seq, change);
  }

  /** Delivers the held events that are due. */
  #advance(track: Track): void {
    const { held } = track;
    let done = 0;
    for (const change of held) {
      this.#fill(track, seqBefore(change));
      if (!this.#step(track, change)) break;
      done++;
    }
    held.splice(0, done);
    if (!isBehind(track)) {
      cancelTimer(track);
      track.gapSince = null;
    } else {
      this.#startTimer(track);
    }
    if (track.newcomers.size > 0) void this.#readForNewcomers(track);
  }

  /** Delivers held events up to a counter value, as far as they leave no gap. */
  #fill(track: Track, upTo: number): void {
    while ((track.delivered ?? 0) < upTo) {
      const seq = (track.delivered ?? 0) + 1;
      const change = track.early.get(seq);
      if (!change) return;
      this.#deliverCounted(track, change, seq);
    }
  }

  #startTimer(track: Track, ms = this.#options.gapGraceMs ?? GAP_GRACE_MS): void {
    if (!this.#isOpen(track)) return;
    track.gapSince ??= performance.now();
    track.timer ??= setTimeout(() => {
      track.timer = undefined;
      if (isBehind(track)) void this.#closeGap(track);
    }, ms);
  }

  async #closeGap(track: Track): Promise<void> {
    const { readLog, retryMs = RETRY_MS, gapTimeoutMs = GAP_TIMEOUT_MS, log } = this.#options;
    await readLog().catch((error) =>
      log.error({ err: error, conversation: track.conversation }, "missed events read failed"),
    );
    if (!this.#isOpen(track) || !isBehind(track)) return;
    const gapMs = performance.now() - (track.gapSince ?? performance.now());
    if (gapMs > gapTimeoutMs) this.#lose(track, "conversation events lost: not in the change log");
    else this.#startTimer(track, retryMs);
  }

  /** Reads the conversation so that late newcomers can be introduced at its current counter. */
  async #readForNewcomers(track: Track): Promise<void> {
    if (track.reading) return;
    track.reading = true;
    const { conversation } = track;
    const { retryMs = RETRY_MS, log } = this.#options;
    const users = [...track.newcomers];
    track.newcomers.clear();
    try {
      const introduction = await this.#introductionOf(conversation, users);
      track.reading = false;
      if (!this.#isOpen(track) || track.delivered === undefined) {
        // The conversation was closed or lost meanwhile: no earlier event is held for the newcomers.
        if (introduction) this.receive(introduction);
        return;
      }
      if (introduction) {
        track.newest = Math.max(track.newest, introduction.at?.seq ?? 0);
        track.held.unshift(introduction);
      }
      this.#advance(track);
    } catch (error) {
      log.error({ err: error, conversation }, "conversation read for new members failed");
      for (const user of users) track.newcomers.add(user);
      setTimeout(() => {
        track.reading = false;
        if (this.#isOpen(track)) this.#advance(track);
      }, retryMs).unref();
    }
  }

  #lose(track: Track, why: string): void {
    cancelTimer(track);
    track.delivered = undefined;
    track.newest = 0;
    track.held = [];
    track.early.clear();
    track.newcomers.clear();
    track.gapSince = null;
    this.#options.log.error({ conversation: track.conversation }, why);
    this.#options.lost(track.conversation);
  }

  #isOpen(track: Track): boolean {
    return this.#tracks.get(track.conversation) === track;
  }
}

function beginDelivery(track: Track, after: number): void {
  track.delivered = track.newest;
  track.skipped = [after, track.newest];
}

const isBehind = ({ delivered, newest, held }: Track) =>
  delivered !== undefined && (delivered < newest || held.length > 0);

function cancelTimer(track: Track): void {
  clearTimeout(track.timer);
  track.timer = undefined;
}

/** The counter value that must be delivered before the event. */
function seqBefore({ at, delivery, stream }: EventChange): number {
  if (!at) return stream?.after ?? 0;
  return delivery === "standing" ? at.seq : at.seq - 1;
}

const isStanding = ({ delivery }: EventChange) => delivery === "standing";

const conversationOf = ({ at, to }: EventChange) =>
  at?.conversation_id ?? ("conversation" in to ? to.conversation : undefined);
