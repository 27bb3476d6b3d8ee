import type { ClaimedTurn } from "@parley/protocol";
import type { Delivered } from "../../changes/bus.ts";
import { transient } from "../../changes/change.ts";
import type { Changes } from "../../changes/stream.ts";
import { beginTurn, endTurn } from "../../domain/turns.ts";
import type { Logger } from "../../observe/log.ts";
import { EXTERNAL_LEASE_MS, EXTERNAL_NODE, OFFLINE_MS, UNCLAIMED_MS } from "../../rules/agents.ts";
import type { AgentCaller } from "../../security/caller.ts";
import type { AccountRecord } from "../../store/accounts.ts";
import type { Store } from "../../store/store.ts";
import type { OfflineWaits } from "../../store/turns.ts";
import { type Claim, claimAgain, claimTurn, requestedTurns } from "./claim-turn.ts";
import { type ConnectedAccount, type ConnectedAccounts, createPresence } from "./presence.ts";
import { WaitingClaims } from "./waiting-claims.ts";

const TICK_MS = 1000;
/** A check that is this many intervals late means that the store was unavailable, or the process paused. */
const LATE_FACTOR = 5;
/** How long to wait when another unit owns the conversation of the turn. */
const BUSY_RETRY_MS = 10;
/** Turns that a node ends as `agent_offline` in one unit of work. */
const MAX_OFFLINE_TURNS = 100;
/** Turns of one agent that its sockets are told of at once. */
const MAX_ANNOUNCED_TURNS = 10;

interface ClaimOptions {
  /** Null: the turn that waits longest. */
  readonly turnId: number | null;
  readonly waitMs: number;
  readonly signal: AbortSignal;
}

interface ExternalTurnsOptions {
  readonly store: Store;
  readonly changes: Pick<Changes, "signalHere">;
  readonly connected: ConnectedAccounts;
  readonly log: Logger;
  /** How often agents without a program are looked for. */
  readonly tickMs?: number;
  /** How long an agent has had no program when its turns are ended. */
  readonly offlineMs?: number;
  /** How long an agent with a program has claimed no turn when its turns are ended. */
  readonly unclaimedMs?: number;
}

export type ExternalTurns = ReturnType<typeof createExternalTurns>;

/** The turns of external agents: programs claim them, on any node. */
export function createExternalTurns(options: ExternalTurnsOptions) {
  const { store, changes, connected, log, tickMs = TICK_MS } = options;
  const { offlineMs = OFFLINE_MS, unclaimedMs = UNCLAIMED_MS } = options;
  const claims = new WaitingClaims();
  const presence = createPresence(store, connected);
  /** The turns that the sockets of each agent on this node were told of, while it has any. */
  const announced = new WeakMap<ConnectedAccount, ReadonlySet<number>>();
  /** Claimed turns that did not reach their programs, with the ids of their agents. */
  const lost = new Map<number, number>();
  /** Since when programs have had the time to connect again. */
  let graceSince = Number.POSITIVE_INFINITY;
  /** When the last check that reached the store began. */
  let checkedAt = Number.POSITIVE_INFINITY;
  let timer: NodeJS.Timeout | undefined;
  let ticking: Promise<void> = Promise.resolve();
  let isStopping = false;

  /** Keeps a claimed turn for the next call of the agent: the client of this one is gone. */
  function keepLost({ id, username }: AccountRecord, { turn_id }: ClaimedTurn): void {
    lost.set(turn_id, id);
    claims.wake(username);
  }

  /** The id of a turn of the agent that did not reach its program: the wanted one, or any. */
  function takeLost(agent: AccountRecord, wanted: number | null): number | null {
    for (const [id, agentId] of lost) {
      if (agentId !== agent.id || (wanted !== null && wanted !== id)) continue;
      lost.delete(id);
      return id;
    }
    return null;
  }

  function announce(username: string): void {
    sendRequests(username).catch((error) => log.error({ err: error }, "turn request not sent"));
  }

  /** Tells the sockets of an agent on this node of turns that they were not told of before. */
  async function sendRequests(username: string): Promise<void> {
    const agent = connected.person(username);
    if (!agent) return;
    const { id } = agent.account;
    const requests = await store.read((tx) => requestedTurns(tx, id, MAX_ANNOUNCED_TURNS));
    const before = announced.get(agent);
    announced.set(agent, new Set(requests.map(({ turn_id }) => turn_id)));
    for (const request of requests) {
      if (before?.has(request.turn_id)) continue;
      // Each node tells its own sockets, so that none is told twice.
      changes.signalHere(transient("events.turnRequested", request, { users: [username] }));
    }
  }

  function scheduleTick(): void {
    if (isStopping) return;
    timer = setTimeout(() => {
      ticking = tick()
        .catch((error) => log.error({ err: error }, "external turn check failed"))
        .then(scheduleTick);
    }, tickMs);
  }

  async function tick(): Promise<void> {
    const now = performance.now();
    await presence.flush(claims.agents());
    // Nodes could not store which programs they have, or programs could not reach this node.
    if (isLate(checkedAt)) graceSince = performance.now();
    // Null if programs have not had that much time to connect again.
    const ifPassed = (ms: number) => (now - graceSince > ms ? ms : null);
    const waits = { offlineMs: ifPassed(offlineMs), unclaimedMs: ifPassed(unclaimedMs) };
    const isOpen = await store.read((tx) => tx.hasOpenTurns());
    if (isOpen && (waits.offlineMs !== null || waits.unclaimedMs !== null)) {
      await failOfflineTurns(now, waits);
    }
    checkedAt = now;
  }

  const isLate = (since: number) => performance.now() - since > LATE_FACTOR * tickMs;

  /** Ends the turns that wait for agents without a program, or whose program claims none. */
  const failOfflineTurns = (now: number, waits: OfflineWaits) =>
    store.write(async (tx) => {
      // The unit itself may have waited for the store.
      if (isLate(now)) return;
      const turns = await tx.claimOfflineTurns(waits, EXTERNAL_LEASE_MS, MAX_OFFLINE_TURNS);
      for (const turn of turns) {
        const conversation = await tx.conversation(turn.conversation_uuid, turn.agent.id);
        if (!conversation) continue;
        await beginTurn(tx, turn, conversation, "");
        const [seen] = await tx.agentsSeen([turn.agent.id], OFFLINE_MS);
        const reason = seen ? "not_claiming" : "not_connected";
        const error = { code: "agent_offline", parameters: { reason } } as const;
        await endTurn(tx, turn.id, { status: "failed", error }, EXTERNAL_NODE);
      }
    });

  return {
    start(): void {
      graceSince = performance.now();
      checkedAt = graceSince;
      scheduleTick();
    },
    async stop(): Promise<void> {
      isStopping = true;
      clearTimeout(timer);
      claims.end(() => true);
      await ticking;
    },
    /** A program makes calls as the agent. */
    seen: ({ id }: Pick<AccountRecord, "id">) => presence.seen(id),
    /** Resolves to null if there is no turn to claim, or the client is gone. */
    async claim(caller: AgentCaller, { turnId, waitMs, signal }: ClaimOptions) {
      const { account } = caller;
      const deadline = performance.now() + waitMs;
      presence.seen(account.id);
      while (!isStopping && !signal.aborted) {
        // Before the claim, so that a turn that is queued during it wakes this call.
        using waiting = claims.open(caller, signal);
        const again = takeLost(account, turnId);
        const claim = await store
          .write<Claim>((tx) =>
            again === null ? claimTurn(tx, { agentId: account.id, turnId }) : claimAgain(tx, again),
          )
          .catch((error) => {
            if (again !== null) lost.set(again, account.id);
            throw error;
          });
        if (claim.kind === "claimed" && !signal.aborted) return claim.turn;
        if (claim.kind === "claimed") keepLost(account, claim.turn);
        if (claim.kind === "busy") await Bun.sleep(BUSY_RETRY_MS);
        if (claim.kind !== "none") continue;
        const left = deadline - performance.now();
        if (left <= 0 || !(await waiting.wait(left))) return null;
      }
      return null;
    },
    /**
     * Wakes programs when turns were queued, tells those that connect of the turns that wait, and ends the
     * calls of those whose token was revoked.
     */
    receive(change: Delivered): void {
      if (change.kind === "turns_queued") {
        for (const username of change.agents ?? []) {
          claims.wake(username);
          announce(username);
        }
      } else if (change.kind === "agent_connected") {
        const agent = connected.person(change.username);
        if (agent) announced.delete(agent);
        announce(change.username);
      } else if (change.kind === "turns_ended") {
        for (const { id } of change.turns) lost.delete(id);
      } else if (change.kind === "session_ended") {
        claims.end(({ token_id }) => token_id === change.session_id);
      } else if (change.kind === "account_suspended") {
        claims.end(({ account }) => account.username === change.username);
      }
    },
  };
}
