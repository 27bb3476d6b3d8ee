import { expect, test } from "bun:test";
import type { Connection } from "../src/agents/tools/connection.ts";
import { createConnectionPool } from "../src/agents/tools/pool.ts";

const connection = (): Connection => ({
  listTools: async () => [],
  callTool: async () => ({ text: "", is_error: false }),
  hasFailed: false,
  isUsable: true,
  onListChanged: () => {},
  close: async () => {},
});

const { signal } = new AbortController();

test("connections that one person holds leave others theirs", async () => {
  const pool = createConnectionPool();
  const open = async () => connection();
  const acquire = (owner_id: number, server: number) =>
    pool.acquire({ key: `${owner_id}/${server}`, owner_id }, open, signal);
  const held = await Promise.all(Array.from({ length: 32 }, (_, server) => acquire(1, server)));
  await expect(acquire(1, 32)).rejects.toThrow("Too many calls of tools are in progress.");
  const others = await acquire(2, 0);

  held[0]?.release();
  const next = await acquire(1, 32);
  expect(pool.size()).toBe(33);
  for (const lease of [...held.slice(1), others, next]) lease.release();
  await pool.close();
});
