import type { Delivered } from "../changes/bus.ts";
import { queueContinuation } from "../domain/tool-calls.ts";
import { beginTurn, endTurn } from "../domain/turns.ts";
import { EXTERNAL_NODE } from "../rules/agents.ts";
import { modelOf } from "../rules/keys.ts";
import type { WriteTx } from "../store/store.ts";
import type { ClaimedTurns, TurnRecord } from "../store/turns.ts";
import type { TurnServices } from "./turn/prepare.ts";
import { runTurn } from "./turn.ts";
import type { TurnLoads } from "./turn-loads.ts";

/** A node that stalls for two seconds keeps its turns. Those of a dead one are taken over within five. */
const LEASE_MS = 3000;
const LEASE_RENEWAL_MS = 1000;
const MAX_CLAIMED_TURNS = 100;
/** How long to wait when all turns that could be claimed are in conversations that others own. */
const BUSY_RETRY_MS = 10;
/** How long other nodes have to claim the turns that were handed over to them. */
const HAND_OVER_MS = 200;

/**
 * Claims waiting turns and runs them concurrently. The store allows one running turn for each agent
 * and conversation. Of several nodes, each claims its share and hands the rest over.
 */
export function createDispatcher(services: TurnServices & { readonly loads: TurnLoads }) {
  const { store, node, loads, log } = services;
  /** Aborts the turns that run here, by id. */
  const running = new Map<number, AbortController>();
  let isStopping = false;
  let claiming: Promise<void> | null = null;
  /** Whether turns may have been queued since the last claim began. */
  let mustClaim = false;
  /** How many turns other nodes have handed over since then. */
  let handedOver = 0;
  let handOverTimer: NodeJS.Timeout | undefined;
  let takingOver: Promise<void> | null = null;
  let renewalTimer: NodeJS.Timeout | undefined;
  let renewedAt = performance.now();
  let isGracePeriod = false;

  /** Releases leases, so that another node can take the turns over before they would expire. */
  const release = (ids: readonly number[]) =>
    renewFor(ids, 0).catch((error) => log.warn({ err: error }, "turn lease release failed"));

  /** A note, because a renewal that waits behind many writes would come too late. */
  const renewFor = (ids: readonly number[], leaseMs: number) =>
    store.note(async (tx) => {
      await tx.renewNode(node, leaseMs);
      await tx.renewLeases(node, ids, leaseMs);
    });

  function wake(): void {
    mustClaim = true;
    startClaiming();
  }

  function claimAtLeast(count: number): void {
    handedOver += count;
    startClaiming();
  }

  function startClaiming(): void {
    if (isStopping) return;
    claiming ??= claim().catch((error) => log.error({ err: error }, "turn claim failed"));
  }

  async function claim(): Promise<void> {
    try {
      while ((mustClaim || handedOver > 0) && !isStopping) {
        const [handsOver, least] = [mustClaim, handedOver];
        mustClaim = false;
        handedOver = 0;
        const { turns, more, left } = await claimBatch(least);
        await runAll(turns.map(({ id }) => id));
        if (left > 0 && handsOver) handOver(left);
        if (more) mustClaim = true;
        if (more && turns.length === 0) await Bun.sleep(BUSY_RETRY_MS);
      }
    } finally {
      claiming = null;
    }
  }

  function claimBatch(least: number): Promise<ClaimedTurns> {
    const share = (waiting: number) => Math.max(least, loads.share(waiting));
    return store.write(async (tx) => {
      const claimed = await tx.claimTurns(node, LEASE_MS, MAX_CLAIMED_TURNS, share);
      for (const turn of claimed.turns) await begin(tx, turn);
      return claimed;
    });
  }

  /** Hands turns over to other nodes, and claims those that they do not claim in time. */
  function handOver(count: number): void {
    if (isStopping) return;
    loads.handOver(count);
    handOverTimer ??= setTimeout(() => {
      handOverTimer = undefined;
      claimAtLeast(MAX_CLAIMED_TURNS);
    }, HAND_OVER_MS);
  }

  async function begin(tx: WriteTx, turn: TurnRecord): Promise<void> {
    const { agent, conversation_uuid } = turn;
    const conversation = await tx.conversation(conversation_uuid, agent.id);
    if (!conversation) return;
    const settings = await tx.agent(agent.id);
    const model = settings ? modelOf(settings, services.config) : "";
    await beginTurn(tx, turn, conversation, model);
  }

  /** Starts turns that this node has claimed. If it stops meanwhile, they are left to others. */
  async function runAll(ids: readonly number[]): Promise<void> {
    if (isStopping) return release(ids);
    for (const id of ids) void run(id);
  }

  async function run(id: number): Promise<void> {
    const controller = new AbortController();
    // A turn that this node lost and has taken over again.
    running.get(id)?.abort();
    running.set(id, controller);
    loads.report(running.size);
    try {
      await runTurn(services, id, controller);
    } catch (error) {
      log.error({ err: error, turn: id }, "turn failed");
      await endAsFailed(id);
    } finally {
      if (running.get(id) === controller) running.delete(id);
      loads.report(running.size);
    }
    wake();
  }

  async function endAsFailed(id: number): Promise<void> {
    const error = { code: "internal", parameters: { reason: "server" } } as const;
    await store
      .write((tx) => endTurn(tx, id, { status: "failed", error }, node))
      .catch((failure) => log.error({ err: failure, turn: id }, "turn end failed"));
  }

  function scheduleRenewal(): void {
    renewalTimer = setTimeout(async () => {
      await renewLeases().catch((error) => log.error({ err: error }, "turn lease renewal failed"));
      if (!isStopping) scheduleRenewal();
    }, LEASE_RENEWAL_MS);
  }

  async function renewLeases(): Promise<void> {
    if (running.size > 0) await renewFor([...running.keys()], LEASE_MS);
    const isIdle = running.size === 0 && !(await store.read((tx) => tx.hasOpenTurns()));
    const now = performance.now();
    const isLate = now - renewedAt > 2 * LEASE_RENEWAL_MS;
    renewedAt = now;
    // The store was unavailable, perhaps to all nodes: the others renew their leases first.
    isGracePeriod = isLate && !isGracePeriod;
    if (!isGracePeriod && !isIdle) takeOverInBackground();
  }

  /** Not awaited: a takeover that waits for locks must not delay the next renewal. */
  function takeOverInBackground(): void {
    if (isStopping) return;
    takingOver ??= takeOverTurns()
      .catch((error) => log.error({ err: error }, "turn takeover failed"))
      .finally(() => {
        takingOver = null;
        wake();
      });
  }

  /** Takes over turns with expired leases: runs them again if nothing was streamed, else ends them. */
  async function takeOverTurns(): Promise<void> {
    const adopted = await store.write(async (tx) => {
      const ids: number[] = [];
      for (const turn of await tx.abandonedTurns(node)) {
        // It runs here, and the next renewal comes: this process was paused, or the row was locked.
        if (turn.node === node && running.has(turn.id)) continue;
        if (turn.node === EXTERNAL_NODE) {
          await endTurn(tx, turn.id, { status: "failed", error: PROGRAM_GONE });
        } else if (turn.rounds.length > 0) await endAndContinue(tx, turn);
        else if (await hasStreamed(tx, turn)) {
          await endTurn(tx, turn.id, { status: "failed", error: INTERRUPTED });
        } else {
          await tx.adoptTurn(turn.id, node, LEASE_MS);
          await begin(tx, turn);
          ids.push(turn.id);
        }
      }
      return ids;
    });
    await runAll(adopted);
  }

  loads.onHandOver(claimAtLeast);
  return {
    /** Takes over the turns of an earlier process and starts to claim turns. */
    start(): void {
      takeOverInBackground();
      scheduleRenewal();
    },
    receive(change: Delivered): void {
      if (change.kind === "turns_queued") wake();
      else if (change.kind === "turns_ended") {
        for (const { id } of change.turns) running.get(id)?.abort();
      }
    },
    running: () => running.size,
    /** Aborts every turn and releases the leases. Another process takes the turns over. */
    async stop(): Promise<void> {
      isStopping = true;
      clearTimeout(renewalTimer);
      clearTimeout(handOverTimer);
      const ids = [...running.keys()];
      for (const controller of running.values()) controller.abort();
      await Promise.all([release(ids), claiming, takingOver]);
    },
  };
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
