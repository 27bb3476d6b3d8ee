import type { Delivered } from "../changes/bus.ts";
import { queueContinuation } from "../domain/tool-calls.ts";
import { beginTurn, endTurn } from "../domain/turns.ts";
import { EXTERNAL_NODE } from "../rules/agents.ts";
import { modelOf } from "../rules/keys.ts";
import type { WriteTx } from "../store/store.ts";
import type { ClaimedTurns, TurnRecord } from "../store/turns.ts";
import { runTurn, type TurnServices } from "./turn.ts";
import type { TurnLoads } from "./turn-loads.ts";

/**
 * A node that stalls for two seconds keeps its turns, and the turns of a node that died are taken
 * over within five.
 */
const LEASE_MS = 3000;
const LEASE_RENEWAL_MS = 1000;
const MAX_CLAIMED_TURNS = 100;
/** How long to wait when all turns that could be claimed are in conversations that others own. */
const BUSY_RETRY_MS = 10;
/** How long other nodes have to claim the turns that were handed over to them. */
const HAND_OVER_MS = 200;

export interface DispatcherServices extends TurnServices {
  readonly loads: TurnLoads;
}

/**
 * Claims waiting turns and runs them concurrently. The store allows one running turn for each agent
 * and conversation. Of several nodes, each claims its share and hands the rest over.
 */
export class Dispatcher {
  readonly #services: DispatcherServices;
  /** Aborts the turns that run here, by id. */
  readonly #running = new Map<number, AbortController>();
  #isStopping = false;
  #claiming: Promise<void> | null = null;
  /** Whether turns may have been queued since the last claim began. */
  #claimAgain = false;
  /** How many turns other nodes have handed over since then. */
  #handedOver = 0;
  #handOverTimer: NodeJS.Timeout | undefined;
  #takingOver: Promise<void> | null = null;
  #renewalTimer: NodeJS.Timeout | undefined;
  #renewedAt = performance.now();
  #isGracePeriod = false;

  constructor(services: DispatcherServices) {
    this.#services = services;
    services.loads.onHandOver((count) => this.#claimAtLeast(count));
  }

  /** Takes over the turns of an earlier process and starts to claim turns. */
  start(): void {
    this.#takeOverInBackground();
    this.#scheduleRenewal();
  }

  /** Claims turns when some were queued, and aborts the calls of turns that have ended. */
  receive(change: Delivered): void {
    if (change.kind === "turns_queued") this.#wake();
    else if (change.kind === "turns_ended") {
      for (const { id } of change.turns) this.#running.get(id)?.abort();
    }
  }

  /** The number of turns that run on this node. */
  running(): number {
    return this.#running.size;
  }

  /** Aborts every turn and releases the leases. Another process takes the turns over. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    clearTimeout(this.#renewalTimer);
    clearTimeout(this.#handOverTimer);
    const ids = [...this.#running.keys()];
    for (const running of this.#running.values()) running.abort();
    await Promise.all([this.#release(ids), this.#claiming, this.#takingOver]);
  }

  /** Releases leases, so that another node can take the turns over before they would expire. */
  async #release(ids: readonly number[]): Promise<void> {
    const { store, node, log } = this.#services;
    await store
      .note(async (tx) => {
        await tx.renewNode(node, 0);
        await tx.renewLeases(node, ids, 0);
      })
      .catch((error) => log.warn({ err: error }, "turn lease release failed"));
  }

  #wake(): void {
    this.#claimAgain = true;
    this.#startClaiming();
  }

  #claimAtLeast(count: number): void {
    this.#handedOver += count;
    this.#startClaiming();
  }

  #startClaiming(): void {
    if (this.#isStopping) return;
    this.#claiming ??= this.#claim().catch((error) =>
      this.#services.log.error({ err: error }, "turn claim failed"),
    );
  }

  /** Claims and runs turns until none is left to claim. */
  async #claim(): Promise<void> {
    try {
      while ((this.#claimAgain || this.#handedOver > 0) && !this.#isStopping) {
        const [handsOver, least] = [this.#claimAgain, this.#handedOver];
        this.#claimAgain = false;
        this.#handedOver = 0;
        const { turns, more, left } = await this.#claimBatch(least);
        await this.#runAll(turns.map(({ id }) => id));
        if (left > 0 && handsOver) this.#handOver(left);
        if (more) this.#claimAgain = true;
        if (more && turns.length === 0) await Bun.sleep(BUSY_RETRY_MS);
      }
    } finally {
      this.#claiming = null;
    }
  }

  #claimBatch(least: number): Promise<ClaimedTurns> {
    const { store, node, loads } = this.#services;
    const share = (waiting: number) => Math.max(least, loads.share(waiting));
    return store.write(async (tx) => {
      const claimed = await tx.claimTurns(node, LEASE_MS, MAX_CLAIMED_TURNS, share);
      for (const turn of claimed.turns) await this.#begin(tx, turn);
      return claimed;
    });
  }

  /** Hands turns over to other nodes, and claims those that they do not claim in time. */
  #handOver(count: number): void {
    if (this.#isStopping) return;
    this.#services.loads.handOver(count);
    this.#handOverTimer ??= setTimeout(() => {
      this.#handOverTimer = undefined;
      this.#claimAtLeast(MAX_CLAIMED_TURNS);
    }, HAND_OVER_MS);
  }

  async #begin(tx: WriteTx, turn: TurnRecord): Promise<void> {
    const { agent, conversation_uuid } = turn;
    const conversation = await tx.conversation(conversation_uuid, agent.id);
    if (!conversation) return;
    const settings = await tx.agent(agent.id);
    const model = settings ? modelOf(settings, this.#services.config) : "";
    await beginTurn(tx, turn, conversation, model);
  }

  /** Starts turns that this node has claimed. If it stops meanwhile, they are left to others. */
  async #runAll(ids: readonly number[]): Promise<void> {
    if (this.#isStopping) return this.#release(ids);
    for (const id of ids) void this.#run(id);
  }

  async #run(id: number): Promise<void> {
    const running = new AbortController();
    // A turn that this node lost and has taken over again.
    this.#running.get(id)?.abort();
    this.#running.set(id, running);
    this.#services.loads.report(this.#running.size);
    try {
      await runTurn(this.#services, id, running);
    } catch (error) {
      this.#services.log.error({ err: error, turn: id }, "turn failed");
      await this.#endAsFailed(id);
    } finally {
      if (this.#running.get(id) === running) this.#running.delete(id);
      this.#services.loads.report(this.#running.size);
    }
    this.#wake();
  }

  async #endAsFailed(id: number): Promise<void> {
    const { store, node, log } = this.#services;
    const error = { code: "internal", parameters: { reason: "server" } } as const;
    await store
      .write((tx) => endTurn(tx, id, { status: "failed", error }, node))
      .catch((failure) => log.error({ err: failure, turn: id }, "turn end failed"));
  }

  #scheduleRenewal(): void {
    this.#renewalTimer = setTimeout(async () => {
      await this.#renewLeases().catch((error) =>
        this.#services.log.error({ err: error }, "turn lease renewal failed"),
      );
      if (!this.#isStopping) this.#scheduleRenewal();
    }, LEASE_RENEWAL_MS);
  }

  /** Renews the leases of this node, then takes over turns with expired leases. */
  async #renewLeases(): Promise<void> {
    const { store, node } = this.#services;
    const ids = [...this.#running.keys()];
    if (ids.length === 0) await store.ready();
    // A note, because a renewal that waits behind many writes would come too late.
    else
      await store.note(async (tx) => {
        await tx.renewNode(node, LEASE_MS);
        await tx.renewLeases(node, ids, LEASE_MS);
      });
    const now = performance.now();
    const isLate = now - this.#renewedAt > 2 * LEASE_RENEWAL_MS;
    this.#renewedAt = now;
    // The store was unavailable, perhaps to all nodes: the others renew their leases first.
    this.#isGracePeriod = isLate && !this.#isGracePeriod;
    if (!this.#isGracePeriod) this.#takeOverInBackground();
  }

  /** Not awaited: a takeover that waits for locks must not delay the next renewal. */
  #takeOverInBackground(): void {
    if (this.#isStopping) return;
    this.#takingOver ??= this.#takeOverTurns()
      .catch((error) => this.#services.log.error({ err: error }, "turn takeover failed"))
      .finally(() => {
        this.#takingOver = null;
        this.#wake();
      });
  }

  /** Takes over turns with expired leases: runs them again if nothing was streamed, else ends them. */
  async #takeOverTurns(): Promise<void> {
    const { store, node } = this.#services;
    const adopted = await store.write(async (tx) => {
      const ids: number[] = [];
      for (const turn of await tx.abandonedTurns(node)) {
        // It runs here, and the next renewal comes: this process was paused, or the row was locked.
        if (turn.node === node && this.#running.has(turn.id)) continue;
        if (turn.node === EXTERNAL_NODE) {
          await endTurn(tx, turn.id, { status: "failed", error: PROGRAM_GONE });
        } else if (turn.rounds.length > 0) await endAndContinue(tx, turn);
        else if (await hasStreamed(tx, turn)) {
          await endTurn(tx, turn.id, { status: "failed", error: INTERRUPTED });
        } else {
          await tx.adoptTurn(turn.id, node, LEASE_MS);
          await this.#begin(tx, turn);
          ids.push(turn.id);
        }
      }
      return ids;
    });
    await this.#runAll(adopted);
  }
}

const INTERRUPTED = { code: "interrupted", parameters: { reason: "restart" } } as const;

/** The lease of a program has expired. Its turn is not given to another one: it may have acted. */
const PROGRAM_GONE = { code: "interrupted", parameters: { reason: "program_gone" } } as const;

/**
 * Ends a turn that has made calls. A call that ran may have been carried out, so nothing is made
 * again: another turn goes on, and its model is told. A second interruption ends that one for good.
 */
async function endAndContinue(tx: WriteTx, turn: TurnRecord): Promise<void> {
  await endTurn(tx, turn.id, { status: "failed", error: INTERRUPTED });
  const { message_uuid, continues_uuid, trigger_uuid, agent, conversation_id } = turn;
  const continued = continues_uuid === null ? null : await tx.message(continues_uuid);
  const earlier = continued && (await tx.turnOfMessage(continued));
  if (message_uuid === null || earlier?.error?.code === "interrupted") return;
  await queueContinuation(tx, { agent_id: agent.id, conversation_id, message_uuid }, trigger_uuid);
}

const hasStreamed = async (tx: WriteTx, { message_id }: TurnRecord): Promise<boolean> =>
  message_id !== null && (await tx.streamed(message_id)) !== "";
