import { expect } from "bun:test";
import type { Sql } from "../../src/store/sql.ts";

const LEAVE =
  "INSERT INTO final_departures (conversation_id, account_id, left_at) VALUES ($1, $2, 0)";
const RETURNING = `${LEAVE} RETURNING conversation_id`;

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
  expect(await outcome((db) => db.change(LEAVE, [owned, 1]))).toContain("has not stated which");
  expect(await outcome((db) => db.changed(`${LEAVE} RETURNING account_id`, [owned, 1]))).toContain(
    "has not stated which",
  );
  const stating = (conversation: number) => (db: Sql) => {
    db.changes(conversation);
    return db.change(LEAVE, [conversation, 2]);
  };
  expect(await outcome(stating(owned))).toBe("changed");
  expect(await outcome(stating(foreign))).toContain(`does not own conversation ${foreign}`);
  expect(await outcome((db) => db.changed(RETURNING, [owned, 3]))).toBe("changed");
  expect(await outcome((db) => db.changed(RETURNING, [foreign, 3]))).toContain("does not own");
  const owning = async (db: Sql) => {
    await db.own(owned);
    await db.change(LEAVE, [owned, 4]);
  };
  expect(await outcome(owning)).toBe("changed");
  const unowned = (db: Sql) => {
    db.changesUnowned();
    return db.change(LEAVE, [foreign, 4]);
  };
  expect(await outcome(unowned)).toBe("changed");
}
