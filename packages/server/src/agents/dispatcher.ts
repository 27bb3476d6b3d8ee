import { beginTurn, endTurn } from "../domain/turns.ts";
import type { TurnPacket } from "../realtime/hub.ts";
import type { WriteTx } from "../store/store.ts";
import type { TurnRecord } from "../store/turns.ts";
import { runTurn, type TurnServices } from "./turn.ts";

/**
 * How long a turn belongs to its node without a renewal. Long enough that a node which is held up
 * for two seconds loses no turn, short enough that a turn of a node that died goes on within five.
 */
const LEASE_MS = 3000;
const RENEW_MS = 1000;
const CLAIMED_AT_ONCE = 100;
/** Until turns whose conversations are busy are looked at again. */
const PAUSE_MS = 10;

export interface Dispatcher {
  /** Hears of turns that were queued or ended. */
  receive(packet: TurnPacket): void;
  /** Takes up what an earlier process left behind, and begins to work. */
  start(): Promise<void>;
  /** Lets go of every call under way; what they were at is taken up by whoever comes next. */
  stop(): Promise<void>;
  /** How many turns run here. */
  running(): number;
}

/** Takes waiting turns, one at a time for each agent and conversation, and runs them side by side. */
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
          const claimed = await tx.claimTurns(node, LEASE_MS, CLAIMED_AT_ONCE);
          for (const turn of claimed.turns) await begin(tx, turn);
          return claimed;
        });
        for (const { id } of turns) void run(id);
        if (!more) continue;
        again = true;
        if (turns.length === 0) await Bun.sleep(PAUSE_MS);
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
    // One that this node had lost, and has taken over again.
    calls.get(id)?.abort();
    calls.set(id, call);
    try {
      await runTurn(services, id, call);
    } catch (error) {
      log.error({ err: error, turn: id }, "a turn failed");
      const message = "Something went wrong here. Try again.";
      await store
        .write((tx) =>
          endTurn(tx, id, { status: "failed", error: { code: "internal", message } }, node),
        )
        .catch((failure) => log.error({ err: failure, turn: id }, "a turn could not be ended"));
    } finally {
      if (calls.get(id) === call) calls.delete(id);
    }
    wake();
  }

  function wake(): void {
    claim().catch((error) => log.error({ err: error }, "turn claim failed"));
  }

  /** What a process that died left running: begun anew if nobody has seen any of it, else ended. */
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

  /** Renews the leases of this node, and takes over turns whose leases nobody renews. */
  async function renew(): Promise<void> {
    if (calls.size === 0) await store.ready();
    else await store.write((tx) => tx.renewLeases(node, [...calls.keys()], LEASE_MS));
    const now = performance.now();
    const isLate = now - renewedAt > 2 * RENEW_MS;
    renewedAt = now;
    // The store was away, perhaps for all nodes: they get the time to renew their leases first.
    isGracePeriod = isLate && !isGracePeriod;
    if (!isGracePeriod) takeOver();
  }

  /** Not awaited by renewals: these must not be late because others hold what it needs. */
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
    }, RENEW_MS);
  }

  return {
    receive(packet) {
      if (packet.kind === "turns_queued") wake();
      else for (const { id } of packet.turns) calls.get(id)?.abort();
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
      // Another node need not wait until they have run out.
      await store.write((tx) => tx.renewLeases(node, ids, 0)).catch(() => {});
    },
    running: () => calls.size,
  };
}
