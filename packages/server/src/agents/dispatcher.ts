import { beginTurn, endTurn } from "../domain/turns.ts";
import type { Delivered } from "../realtime/bus.ts";
import type { WriteTx } from "../store/store.ts";
import type { TurnRecord } from "../store/turns.ts";
import { runTurn, type TurnServices } from "./turn.ts";

/**
 * A node that stalls for two seconds keeps its turns, and the turns of a node that died are taken
 * over within five.
 */
const LEASE_MS = 3000;
const LEASE_RENEWAL_MS = 1000;
const MAX_CLAIMED_TURNS = 100;
/** Before the next claim, when all turns that could be claimed are in busy conversations. */
const BUSY_RETRY_MS = 10;

export interface Dispatcher {
  /** Claims turns when some were queued, and aborts the calls of turns that have ended. */
  receive(change: Delivered): void;
  /** Takes over the turns of an earlier process and starts to claim turns. */
  start(): Promise<void>;
  /** Aborts every call and releases the leases. Another process takes the turns over. */
  stop(): Promise<void>;
  /** The number of turns that run on this node. */
  running(): number;
}

/**
 * Claims waiting turns and runs them concurrently. The store allows one running turn for each agent
 * and conversation.
 */
export function dispatcher(services: TurnServices): Dispatcher {
  const { node, store, config, log } = services;
  const calls = new Map<number, AbortController>();
  let stopping = false;
  let claiming = false;
  let again = false;
  let timer: NodeJS.Timeout | undefined;
  let renewedAt = performance.now();
  let isGracePeriod = false;
  let recovering = false;

  async function claim(): Promise<void> {
    if (stopping) return;
    if (claiming) {
      again = true;
      return;
    }
    claiming = true;
    try {
      do {
        again = false;
        const { turns, more } = await store.write(async (tx) => {
          const claimed = await tx.claimTurns(node, LEASE_MS, MAX_CLAIMED_TURNS);
          for (const turn of claimed.turns) await begin(tx, turn);
          return claimed;
        });
        for (const { id } of turns) void run(id);
        if (!more) continue;
        again = true;
        if (turns.length === 0) await Bun.sleep(BUSY_RETRY_MS);
      } while (again && !stopping);
    } finally {
      claiming = false;
    }
  }

  async function begin(tx: WriteTx, turn: TurnRecord): Promise<void> {
    const { agent, conversation_uuid } = turn;
    const conversation = await tx.conversation(conversation_uuid, agent.id);
    if (!conversation) return;
    const chosen = (await tx.agent(agent.id))?.model;
    const model = chosen ?? config.providers.get(agent.provider ?? "")?.model ?? "";
    await beginTurn(tx, turn, conversation, model);
  }

  async function run(id: number): Promise<void> {
    const call = new AbortController();
    // The call of a turn that this node lost and has taken over again.
    calls.get(id)?.abort();
    calls.set(id, call);
    try {
      await runTurn(services, id, call);
    } catch (error) {
      log.error({ err: error, turn: id }, "turn failed");
      const message = "Something went wrong here. Try again.";
      await store
        .write((tx) =>
          endTurn(tx, id, { status: "failed", error: { code: "internal", message } }, node),
        )
        .catch((failure) => log.error({ err: failure, turn: id }, "turn end failed"));
    } finally {
      if (calls.get(id) === call) calls.delete(id);
    }
    wake();
  }

  function wake(): void {
    claim().catch((error) => log.error({ err: error }, "turn claim failed"));
  }

  /** Takes over turns with expired leases: runs them again if nothing was streamed, else ends them. */
  async function recover(): Promise<void> {
    const adopted = await store.write(async (tx) => {
      const again: number[] = [];
      for (const turn of await tx.abandonedTurns(node)) {
        if (turn.message_id !== null && (await tx.streamed(turn.message_id)) !== "") {
          const message = "The answer was interrupted by a restart. Try again.";
          await endTurn(tx, turn.id, { status: "failed", error: { code: "interrupted", message } });
        } else {
          await tx.adoptTurn(turn.id, node, LEASE_MS);
          await begin(tx, turn);
          again.push(turn.id);
        }
      }
      return again;
    });
    for (const id of adopted) void run(id);
  }

  /** Renews the leases of this node, then takes over turns with expired leases. */
  async function renew(): Promise<void> {
    if (calls.size === 0) await store.ready();
    else await store.write((tx) => tx.renewLeases(node, [...calls.keys()], LEASE_MS));
    const now = performance.now();
    const isLate = now - renewedAt > 2 * LEASE_RENEWAL_MS;
    renewedAt = now;
    // The store was unavailable, perhaps to all nodes: the others renew their leases first.
    isGracePeriod = isLate && !isGracePeriod;
    if (!isGracePeriod) takeOver();
  }

  /** Runs in the background: a takeover that waits for locks must not delay the next renewal. */
  function takeOver(): void {
    if (recovering) return;
    recovering = true;
    recover()
      .then(wake)
      .catch((error) => log.error({ err: error }, "turn takeover failed"))
      .finally(() => {
        recovering = false;
      });
  }

  function scheduleRenewal(): void {
    timer = setTimeout(async () => {
      await renew().catch((error) => log.error({ err: error }, "turn lease renewal failed"));
      if (!stopping) scheduleRenewal();
    }, LEASE_RENEWAL_MS);
  }

  return {
    receive(change) {
      if (change.kind === "turns_queued") wake();
      else if (change.kind === "turns_ended") {
        for (const { id } of change.turns) calls.get(id)?.abort();
      }
    },
    async start() {
      await recover();
      wake();
      scheduleRenewal();
    },
    async stop() {
      stopping = true;
      clearTimeout(timer);
      const ids = [...calls.keys()];
      for (const call of calls.values()) call.abort();
      // Another node can take the turns over before their leases would expire.
      await store
        .write((tx) => tx.renewLeases(node, ids, 0))
        .catch((error) => log.warn({ err: error }, "turn lease release failed"));
    },
    running: () => calls.size,
  };
}
