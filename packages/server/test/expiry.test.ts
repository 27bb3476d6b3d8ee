import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "@parley/testkit/until.ts";
import { createLogger } from "../src/observe/log.ts";
import { openSqliteStore } from "../src/store/sqlite/index.ts";
import type { Store } from "../src/store/store.ts";
import { startUpkeep } from "../src/upkeep/expiry.ts";
import {
  newAccount,
  newAgent,
  newGroup,
  recordOf,
  START,
  send,
  times,
} from "./support/store-contract/fixture.ts";

const CALLS = 90;

test("many tool calls expire in small units of work", async () => {
  const folder = mkdtempSync(join(tmpdir(), "parley-upkeep-"));
  const store = openSqliteStore(join(folder, "parley.db"));
  await store.write(async (tx) => {
    const alice = await newAccount(tx, { username: "alice" });
    const agent = await newAgent(tx, alice, "claude");
    const chat = await newGroup(tx, [alice, agent]);
    const message = await recordOf(tx, await send(tx, chat, agent, "May I?"));
    for (const position of times(CALLS)) {
      await tx.insertToolCall({
        uuid: Bun.randomUUIDv7(),
        message_id: message.id,
        conversation_id: chat.id,
        agent_id: agent.id,
        owner_id: alice.id,
        round: 0,
        position,
        text_bytes: 0,
        model_id: `call_${position}`,
        provider_fields: null,
        server_id: null,
        server: "parley",
        tool: "current_time",
        title: "Current time",
        fingerprint: null,
        arguments: {},
        status: "pending",
        error: null,
        created_at: START,
        started_at: null,
        finished_at: null,
        expires_at: START,
      });
    }
  });
  const expired: number[] = [];
  store.onCommit((changes) => void expired.push(changes.length));
  const work = startUpkeep({ store, auditDays: 90, log: createLogger("silent") });
  const total = () => expired.reduce((sum, count) => sum + count, 0);
  await until(() => total() === CALLS, "all calls have expired");
  await work.stop();
  expect(Math.max(...expired)).toBeLessThanOrEqual(20);
  await store.close();
  rmSync(folder, { recursive: true });
});

test("a purge ends after the current batch when the server stops", async () => {
  let batches = 0;
  /** There is always another full batch, as after a long outage. */
  const store: Pick<Store, "read" | "write"> = {
    async write(work) {
      await Bun.sleep(0);
      if (batches > 0) stopping ??= started.stop();
      const batch = (_: number, size: number) => {
        batches++;
        return size;
      };
      return work({ purgeSessions: batch, expiredToolCalls: () => [] } as never);
    },
    read: async (work) => work({ expiredToolCalls: () => [] } as never),
  };
  let stopping: Promise<void> | undefined;
  const started = startUpkeep({ store, auditDays: 90, log: createLogger("silent") });
  await until(() => stopping !== undefined, "the server stops");
  await stopping;
  expect(batches).toBe(2);
});
