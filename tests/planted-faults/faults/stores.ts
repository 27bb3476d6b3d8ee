import type { Fault } from "../fault.ts";

/** One of the two stores alone. */
export const stores: readonly Fault[] = [
  {
    name: "on SQLite one's own message is unread",
    file: "packages/server/src/store/hot/messages-sqlite.ts",
    find: "wrote = 1\n      WHERE conversation_id",
    replace: "wrote = 1\n      WHERE false AND conversation_id",
    tests: ["packages/server/test/store-sqlite.test.ts", "tests/conformance/messages.test.ts"],
  },
  {
    name: "on SQLite the counter of a send that was undone stays",
    file: "packages/server/src/store/sqlite/sql.ts",
    find: "    this.#forget();\n    if (this.#db.inTransaction)",
    replace: "    if (this.#db.inTransaction)",
    tests: ["packages/server/test/store-sqlite.test.ts"],
  },
  {
    name: "on SQLite a message does not count on from what another process has written",
    file: "packages/server/src/store/sqlite/sql.ts",
    find: "if (version !== this.#version) this.known?.clear();",
    replace: "",
    tests: ["packages/server/test/store-sqlite.test.ts"],
  },
  {
    name: "on SQLite a conversation that has changed is not read again",
    file: "packages/server/src/store/sqlite/sql.ts",
    find: "= true;\n    if (prepared.isKnown) this.known?.drop(this.stated ?? null);\n    return changes;",
    replace: "= true;\n    return changes;",
    tests: ["packages/server/test/store-sqlite.test.ts"],
  },
  {
    name: "on SQLite a unit does not see the read position of a send in the same transaction",
    file: "packages/server/src/store/sqlite/sql.ts",
    find: "    if (found.needsRows) this.flush();\n",
    replace: "",
    tests: ["packages/server/test/store-sqlite.test.ts"],
  },
  {
    name: "on PostgreSQL a message is dropped if another person used the same client_msg_id",
    file: "packages/server/src/store/hot/messages-postgres.ts",
    find: "AND m.sender_id = g.sender_id AND m.client_msg_id = g.client_msg_id",
    replace: "AND m.client_msg_id = g.client_msg_id",
    tests: ["packages/server/test/store-postgres.test.ts"],
  },
  {
    name: "on PostgreSQL a read position moves back",
    file: "packages/server/src/store/hot/conversations-postgres.ts",
    find: "AND members.last_read_seq <",
    replace: "AND 0 * members.last_read_seq <",
    tests: ["packages/server/test/store-postgres.test.ts"],
  },
];
