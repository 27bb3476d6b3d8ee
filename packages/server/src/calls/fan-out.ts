import type { Change } from "../changes/change.ts";
import { NOBODY } from "../rules/accounts.ts";
import { fanOutCost } from "../rules/costs.ts";
import { type Awaitable, after } from "../store/awaitable.ts";
import type { ConversationRecord } from "../store/conversations.ts";
import type { WriteTx } from "../store/store.ts";
import type { Context, Needs } from "./needs.ts";

/** Conversations whose size is remembered at most. When there are more, all are read again. */
const MAX_SIZES = 10_000;

type Unit = (tx: WriteTx, record?: never) => Awaitable<unknown>;

/**
 * What handlers need, with a store and an audit log whose units of work charge the call for those who
 * receive what they announce: once for each conversation and unit, whatever the operation.
 * `conversationNew` is left out: operations that add people declare what each of them costs.
 */
export function chargingFanOut(needs: Needs): Needs {
  const { store, audit } = needs;
  /** By conversation, as a unit has last read it, so that the path of every message reads nothing more. */
  const sizes = new Map<string, number>();
  const remember = (uuid: string, found: ConversationRecord | null) => {
    if (sizes.size >= MAX_SIZES) sizes.clear();
    if (found) sizes.set(uuid, found.participant_count);
    return found;
  };

  /** Runs units of work with `run`, and charges for what they announce. */
  function charging(run: (unit: never) => Promise<unknown>, charge: Context["charge"]) {
    return async (unit: Unit) => {
      const told = new Set<string>();
      let users = 0;
      const watch = (change: Change) => {
        if (change.kind !== "event" || change.delivery === "standing") return change as never;
        if ("users" in change.to) users += change.to.users.length;
        else told.add(change.to.conversation);
        return change as never;
      };
      const watched: Unit = (tx, record) => {
        // The unit may run again.
        told.clear();
        users = 0;
        const watching: Pick<WriteTx, "emit" | "signal" | "conversation"> = {
          emit: (change) => tx.emit(watch(change)),
          signal: (change) => tx.signal(watch(change)),
          conversation: (uuid, viewerId) =>
            after(tx.conversation(uuid, viewerId), (found) => remember(uuid, found)),
        };
        return unit({ __proto__: tx, ...watching } as unknown as WriteTx, record);
      };
      const result = await run(watched as never);
      charge(fanOutCost(users));
      for (const uuid of told) {
        const read = () => store.read((tx) => tx.conversation(uuid, NOBODY));
        // What is stored must not be answered with an error.
        if (!sizes.has(uuid)) remember(uuid, await read().catch(() => null));
        charge(fanOutCost(sizes.get(uuid) ?? 0));
      }
      return result;
    };
  }

  return {
    __proto__: needs,
    get store() {
      const { charge } = this as unknown as Context;
      const [write, note] = [charging(store.write, charge), charging(store.note, charge)];
      return { __proto__: store, write, note };
    },
    get audit() {
      const { charge } = this as unknown as Context;
      return { __proto__: audit, write: charging(audit.write, charge) };
    },
  } as unknown as Needs;
}
