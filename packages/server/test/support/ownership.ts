import { expect } from "bun:test";
import { raw, type Sql, sql } from "../../src/store/sql.ts";

const leave = (conversation: number, account: number) => sql`
  INSERT INTO final_departures (conversation_id, account_id, left_at)
  VALUES (${conversation}, ${account}, 0)`;

/** Expects that a port refuses methods that change a conversation which they do not own, or do not name. */
export async function expectOwnership(port: () => Sql, owned: number, foreign: number) {
  const outcome = async (method: (db: Sql) => unknown) => {
    try {
      await method(port());
      return "changed";
    } catch (error) {
      return String(error);
    }
  };
  expect(await outcome((db) => db.change`${leave(owned, 1)}`)).toContain("has not stated which");
  const returning = (conversation: number, column: string) => (db: Sql) =>
    db.changed`${leave(conversation, 3)} RETURNING ${raw(column)}`;
  expect(await outcome(returning(owned, "account_id"))).toContain("has not stated which");
  const stating = (conversation: number) => (db: Sql) => {
    db.changes(conversation);
    return db.change`${leave(conversation, 2)}`;
  };
  expect(await outcome(stating(owned))).toBe("changed");
  expect(await outcome(stating(foreign))).toContain(`does not own conversation ${foreign}`);
  expect(await outcome(returning(owned, "conversation_id"))).toBe("changed");
  expect(await outcome(returning(foreign, "conversation_id"))).toContain("does not own");
  const owning = async (db: Sql) => {
    await db.own(owned);
    await db.change`${leave(owned, 4)}`;
  };
  expect(await outcome(owning)).toBe("changed");
  const unowned = (db: Sql) => {
    db.changesUnowned();
    return db.change`${leave(foreign, 4)}`;
  };
  expect(await outcome(unowned)).toBe("changed");
}
