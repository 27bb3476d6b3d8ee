import { foreignConversation } from "../../src/store/checked-store.ts";
import { UnitRecords } from "../../src/store/owned-writes.ts";
import type { UnitRun } from "../../src/store/postgres/transaction.ts";
import type { SharedStore, WriteTx } from "../../src/store/store.ts";

/**
 * A PostgreSQL store whose units throw when a method changes a conversation that they do not own by
 * then, or does not own what it is declared to own.
 */
export function checkingLocks(store: SharedStore): SharedStore {
  return {
    ...store,
    write: (work) => store.write((tx) => work(checkedTx(tx))),
    note: (work) => store.note((tx) => work(checkedTx(tx))),
  };
}

function checkedTx(tx: WriteTx): WriteTx {
  const { unit } = tx as unknown as { unit: UnitRun };
  const records = new UnitRecords();
  return new Proxy(tx, {
    get(target, name: keyof WriteTx) {
      const method = Reflect.get(target, name) as (...args: unknown[]) => unknown;
      if (name === "emit" || name === "signal") return method.bind(target);
      return async (...args: unknown[]) => {
        const changed = records.changedBy(name, args);
        const checked = checkedUnit(unit, () => checkOwned(unit, name, changed));
        const result = await Reflect.apply(method, { unit: checked }, args);
        const owned = records.called(name, args, result);
        // No other unit can see a conversation that was inserted just now.
        if (name !== "insertConversation") checkOwned(unit, name, owned);
        return result;
      };
    },
  });
}

function checkOwned(unit: UnitRun, name: string, conversations: readonly number[]): void {
  const foreign = conversations.find((id) => !unit.owned.has(`counters:${id}`));
  if (foreign !== undefined) throw foreignConversation(name, foreign);
}

/** Calls `check` before each statement that changes something. */
function checkedUnit(unit: UnitRun, check: () => void): UnitRun {
  return new Proxy(unit, {
    get(target, name) {
      const member = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      return (...args: unknown[]) => {
        if (
          name === "change" ||
          name === "changed" ||
          name === "write" ||
          (name === "together" && isWriting(args[0]))
        )
          check();
        return Reflect.apply(member, target, args);
      };
    },
  });
}

const isWriting = (batch: unknown) => (batch as { writes: boolean }).writes;
