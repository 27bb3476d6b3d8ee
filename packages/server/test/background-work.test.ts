import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { join } from "node:path";
import { people, search } from "@parley/testkit/client.ts";
import { onSeveralNodes, startServer } from "@parley/testkit/server.ts";
import { until } from "@parley/testkit/until.ts";

/** PostgreSQL indexes messages in the unit of work that stores them. */
test.skipIf(onSeveralNodes)(
  "failing search indexing shows in /ready, /metrics and the log",
  async () => {
    await using server = await startServer({ PARLEY_LOG: "info" });
    const get = async (path: string) => {
      const response = await fetch(server.url + path);
      return { status: response.status, text: await response.text() };
    };
    const failures = async () => {
      const { text } = await get("/metrics");
      const sample = /^parley_store_background_failures_total\{kind="search_indexing"\} (\d+)$/m;
      return Number(sample.exec(text)?.[1]);
    };
    const logged = (msg: string) =>
      until(() => server.output().includes(`"msg":"${msg}"`), `"${msg}" is logged`);
    // A search is answered once the index is there.
    const [alice] = await people(server.url, "alice");
    await search(alice, { query: "needle" });
    expect(await get("/ready")).toEqual({ status: 200, text: '{"ok":true}' });
    expect(await failures()).toBe(0);

    using index = new Database(join(server.dataDir, "parley-search.db"));
    index.run("PRAGMA busy_timeout = 5000");
    index.run("ALTER TABLE progress RENAME TO progress_aside");
    await server.moveClockUntil(async () => (await failures()) > 0, "the indexing fails");
    expect(await get("/ready")).toEqual({
      status: 200,
      text: '{"ok":true,"failing":["search_indexing"]}',
    });
    await logged("search indexing failed");

    index.run("ALTER TABLE progress_aside RENAME TO progress");
    const isReady = async () => (await get("/ready")).text === '{"ok":true}';
    await server.moveClockUntil(isReady, "the indexing recovers");
    await logged("search indexing recovered");
    expect((await get("/health")).status).toBe(200);
  },
);
