import type { EventChange } from "../changes/change.ts";
import type { Logger } from "../observe/log.ts";
import type { CatchUp, EventLog } from "./bus.ts";
import { invitation, stillThere } from "./newcomers.ts";

/** Another node may have committed first and publish later: so long it is waited for. */
const GRACE_MS = 20;
/** How long until a log that could not be read is tried again. */
const RETRY_MS = 1000;
/** What may wait for an earlier event of its conversation; beyond it the log has to do. */
const MOST_HELD = 1000;

export interface Sequencer extends CatchUp {
  /** Packets of the conversation come in from now on. Where they begin is not known yet. */
  open(conversation: string): void;
  close(conversation: string): void;
  /** Where they begin, unless that is known; the store had the conversation at this value. */
  begin(conversation: string, seq: number): void;
  receive(packet: EventChange): void;
  /** Reads the log, whether anything seems to be missing or not. */
  check(conversation: string): void;
  /** The counter value that was delivered last; undefined until it is known. */
  at(conversation: string): number | undefined;
  stop(): void;
}

export interface SequencerOptions {
  events: EventLog;
  log: Logger;
  deliver(packet: EventChange): void;
  /** The log no longer has what is missing. */
  lost(conversation: string): void;
  graceMs?: number;
  retryMs?: number;
  mostHeld?: number;
}

/** One conversation on its way through. */
interface Track {
  readonly conversation: string;
  /** The value delivered last. Until it is known nobody here listens, and nothing is delivered. */
  delivered: number | undefined;
  /** The highest value heard of. */
  newest: number;
  /** What waits for something earlier, as it came. */
  held: EventChange[];
  /** Counted events that are at hand but not due. */
  early: Map<number, EventChange>;
  /** Who took part at which value, and has to be told anew because that is past. */
  newcomers: Map<string, number>;
  timer: NodeJS.Timeout | undefined;
  reading: boolean;
  again: boolean;
}

/**
 * Puts the packets of each conversation in the order of its counter, from whichever node they come,
 * without gaps and without repeats. A gap holds back everything of the conversation: for a moment,
 * in case it closes by itself, and then until the log has said what is missing.
 */
export function sequencer(options: SequencerOptions): Sequencer {
  const { events: eventLog, log, deliver, lost } = options;
  const { graceMs = GRACE_MS, retryMs = RETRY_MS, mostHeld = MOST_HELD } = options;
  const tracks = new Map<string, Track>();

  const isOpen = (track: Track) => tracks.get(track.conversation) === track;

  function receive(packet: EventChange): void {
    const track = tracks.get(conversationOf(packet) ?? "");
    if (!track) {
      // A conversation that is not followed has no hearers here; an account may have.
      if ("users" in packet.to) deliver(packet);
      return;
    }
    if (packet.at) track.newest = Math.max(track.newest, packet.at.seq);
    if (track.delivered === undefined) {
      // Whoever is about to listen reads the store afterwards: this is in it already.
      if (!isStanding(packet)) return;
      track.delivered = track.newest;
    }
    if (!track.reading && track.held.length === 0 && step(track, packet)) {
      if (track.newcomers.size > 0) wait(track);
      return;
    }
    hold(track, packet);
    if (!track.reading) advance(track);
  }

  /** Delivers a packet if it is due, and drops it if it is past. False when it has to wait. */
  function step(track: Track, packet: EventChange): boolean {
    const delivered = track.delivered ?? 0;
    if (!packet.at) {
      deliver(packet);
      return true;
    }
    const { seq } = packet.at;
    if (!isStanding(packet)) {
      if (seq > delivered + 1) return false;
      if (seq === delivered + 1) pass(track, packet, seq);
      return true;
    }
    if (seq > delivered) return false;
    if (seq === delivered) deliver(packet);
    else if ("users" in packet.to) {
      for (const username of packet.to.users) welcome(track, username, seq);
    }
    return true;
  }

  function pass(track: Track, packet: EventChange, seq: number): void {
    track.delivered = seq;
    track.early.delete(seq);
    deliver(packet);
  }

  function hold(track: Track, packet: EventChange): void {
    if (track.held.length >= mostHeld) {
      for (const { to, at } of track.held.filter(isStanding)) {
        if ("users" in to) for (const each of to.users) welcome(track, each, at?.seq ?? 0);
      }
      track.held = [];
      track.early.clear();
      log.warn({ conversation: track.conversation }, "too many events wait for an earlier one");
    }
    track.held.push(packet);
    if (packet.at && !isStanding(packet)) track.early.set(packet.at.seq, packet);
  }

  /** Delivers whatever is due of what was held back or read. */
  function advance(track: Track): void {
    const waiting = track.held;
    let done = 0;
    for (const packet of waiting) {
      if (packet.at) fill(track, isStanding(packet) ? packet.at.seq : packet.at.seq - 1);
      if (!step(track, packet)) break;
      done++;
    }
    waiting.splice(0, done);
    if (waiting.length === 0) {
      fill(track, Number.POSITIVE_INFINITY);
      track.early.clear();
    }
    if (isBehind(track)) wait(track);
    else relax(track);
  }

  function fill(track: Track, upTo: number): void {
    while ((track.delivered ?? 0) < upTo) {
      const seq = (track.delivered ?? 0) + 1;
      const packet = track.early.get(seq);
      if (!packet) return;
      pass(track, packet, seq);
    }
  }

  function welcome(track: Track, username: string, seq: number): void {
    track.newcomers.set(username, Math.max(seq, track.newcomers.get(username) ?? 0));
  }

  const isBehind = ({ delivered, newest, held, newcomers }: Track) =>
    delivered !== undefined && (delivered < newest || held.length > 0 || newcomers.size > 0);

  function wait(track: Track, ms = graceMs): void {
    if (track.reading || !isOpen(track)) return;
    track.timer ??= setTimeout(() => {
      track.timer = undefined;
      if (isBehind(track)) void read(track);
    }, ms);
  }

  function relax(track: Track): void {
    clearTimeout(track.timer);
    track.timer = undefined;
  }

  /** Has the log say what is missing. Until it has, everything that comes is held back. */
  async function read(track: Track): Promise<void> {
    if (track.reading) {
      track.again = true;
      return;
    }
    const { conversation, delivered = 0, newest } = track;
    const newcomers = [...track.newcomers];
    relax(track);
    track.reading = true;
    track.again = false;
    try {
      const shared = newcomers.length > 0 ? await eventLog.sharedConversation(conversation) : null;
      const from = Math.min(delivered, ...newcomers.map(([, seq]) => seq));
      const packets = await packetsSince(conversation, from);
      if (!isOpen(track)) return;
      track.reading = false;
      if (!packets) return lose(track);
      for (const packet of packets) {
        const seq = packet.at?.seq ?? 0;
        if (seq > delivered) track.early.set(seq, packet);
      }
      for (const [username, seq] of newcomers) {
        if (track.newcomers.get(username) === seq) track.newcomers.delete(username);
      }
      const told = shared && invitation(shared, stillThere(newcomers, packets, shared.seq));
      if (told) {
        track.newest = Math.max(track.newest, shared.seq);
        track.held.unshift(told);
      }
      advance(track);
      if (!isOpen(track)) return;
      // All of it was committed before it was heard of: a log that does not have it never will.
      if ((track.delivered ?? 0) < newest && track.delivered === delivered) lose(track);
      else if ((track.delivered ?? 0) < newest || track.again) void read(track);
    } catch (error) {
      log.error({ err: error, conversation }, "missed events could not be read");
      track.reading = false;
      wait(track, retryMs);
    }
  }

  async function packetsSince(conversation: string, seq: number): Promise<EventChange[] | null> {
    const announcements = await eventLog.eventsSince(conversation, seq);
    return announcements?.flatMap((each) => (each.kind === "event" ? [each] : [])) ?? null;
  }

  function lose(track: Track): void {
    relax(track);
    track.delivered = undefined;
    track.newest = 0;
    track.held = [];
    track.early.clear();
    track.newcomers.clear();
    log.error({ conversation: track.conversation }, "missed events are no longer kept");
    lost(track.conversation);
  }

  function behind(conversation: string, seq: number): void {
    const track = tracks.get(conversation);
    if (!track) return;
    track.newest = Math.max(track.newest, seq);
    if (isBehind(track)) wait(track);
  }

  async function invite(conversation: string, username: string, seq: number): Promise<void> {
    const shared = await eventLog.sharedConversation(conversation);
    const packets = await packetsSince(conversation, seq);
    if (!shared || !packets) return;
    const told = invitation(shared, stillThere([[username, seq]], packets, shared.seq));
    if (told) receive(told);
  }

  return {
    open(conversation) {
      tracks.set(conversation, {
        conversation,
        delivered: undefined,
        newest: 0,
        held: [],
        early: new Map(),
        newcomers: new Map(),
        timer: undefined,
        reading: false,
        again: false,
      });
    },
    close(conversation) {
      const track = tracks.get(conversation);
      if (track) relax(track);
      tracks.delete(conversation);
    },
    begin(conversation, seq) {
      const track = tracks.get(conversation);
      if (track) track.delivered ??= Math.max(seq, track.newest);
      behind(conversation, seq);
    },
    receive,
    check(conversation) {
      const track = tracks.get(conversation);
      if (track?.delivered !== undefined) void read(track);
    },
    behind,
    rejoin(conversation, username, seq) {
      const track = tracks.get(conversation);
      if (track?.delivered !== undefined) {
        welcome(track, username, seq);
        wait(track);
        return;
      }
      invite(conversation, username, seq).catch((error) => {
        log.error({ err: error, conversation }, "a new member could not be told");
      });
    },
    at: (conversation) => tracks.get(conversation)?.delivered,
    stop() {
      for (const track of tracks.values()) relax(track);
      tracks.clear();
    },
  };
}

/** Tells accounts of a conversation, and carries the counter as it stands. */
const isStanding = ({ delivery }: EventChange) => delivery === "standing";

const conversationOf = ({ at, to }: EventChange) =>
  at?.conversation_id ?? ("conversation" in to ? to.conversation : undefined);
