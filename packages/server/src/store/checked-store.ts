import { UnitRecords } from "./owned-writes.ts";
import type { Store, WriteTx } from "./store.ts";

/** They own the conversation themselves. Their units decide by nothing that they have read of it before. */
const OWNING_WRITES: ReadonlySet<string> = new Set(["releasePair", "eraseToolCalls"]);

/**
 * A store whose units throw when they change a conversation that they do not own. SQLite runs one unit
 * at a time and owns nothing: there the check finds what would be a race on PostgreSQL.
 */
export function checkingOwnership<Opened extends Store>(store: Opened): Opened {
  return {
    ...store,
    write: (work: (tx: WriteTx) => never) => store.write((tx) => work(checkedTx(tx))),
    note: (work: (tx: WriteTx) => never) => store.note((tx) => work(checkedTx(tx))),
  };
}

function checkedTx(tx: WriteTx): WriteTx {
  const records = new UnitRecords();
  return new Proxy(tx, {
    get(target, name: keyof WriteTx) {
      const method = target[name] as (...args: unknown[]) => unknown;
      return (...args: unknown[]) => {
        const foreign = records.changedBy(name, args).find((id) => !records.owned.has(id));
        if (foreign !== undefined && !OWNING_WRITES.has(name)) {
          throw foreignConversation(name, foreign);
        }
        const called = (result: unknown) => {
          records.called(name, args, result);
          return result;
        };
        const result = method.apply(target, args);
        return result instanceof Promise ? result.then(called) : called(result);
      };
    },
  });
}

export const foreignConversation = (name: string, id: number) =>
  new Error(`${name} changes conversation ${id}, which its unit does not own`);
