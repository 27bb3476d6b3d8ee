import { afterAll, describe, expect, spyOn, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { EventFrame } from "@parley/protocol";
import { until } from "@parley/testkit/until.ts";
import type { Delivered } from "../src/changes/bus.ts";
import { type Blobs, previewOf } from "../src/files/blobs.ts";
import { openDiskBlobs } from "../src/files/disk.ts";
import { maintainFiles } from "../src/files/maintenance.ts";
import { createLogger } from "../src/observe/log.ts";
import { createMetrics } from "../src/observe/metrics.ts";
import { NOBODY } from "../src/rules/accounts.ts";
import { openSqliteStore } from "../src/store/sqlite/index.ts";
import type { Store } from "../src/store/store.ts";
import { newAccount, newGroup, remove, send } from "./support/store-contract/fixture.ts";

const HOUR_MS = 60 * 60 * 1000;
const folder = mkdtempSync(join(tmpdir(), "parley-maintenance-"));
afterAll(() => rmSync(folder, { recursive: true }));

const hoursAgo = (hours: number) => Date.now() - hours * HOUR_MS;

/** A store and a file storage with one person and one group. */
async function installation(name: string) {
  const store = openSqliteStore(join(folder, `${name}.db`));
  /** The frames of edits that were announced. */
  const edits: EventFrame<"events.messageEdited">[] = [];
  store.onCommit((changes) => {
    for (const each of changes) {
      if (each.kind === "event" && each.name === "events.messageEdited") {
        edits.push(JSON.parse(each.data));
      }
    }
  });
  const storage = join(folder, name);
  const blobs = await openDiskBlobs(storage);
  const { ada, chat } = await store.write(async (tx) => {
    const ada = await newAccount(tx, { username: "ada" });
    return { ada, chat: await newGroup(tx, [ada]) };
  });
  const pathOf = (object: string) => join(storage, object.slice(34, 36), object);

  /** Stores an object that is some hours old. */
  async function put(object: string, hours = 0): Promise<void> {
    const path = join(blobs.incoming, object);
    writeFileSync(path, "bytes");
    await blobs.put(object, path);
    const time = hoursAgo(hours) / 1000;
    utimesSync(pathOf(object), time, time);
  }

  /** A file of the person that was announced some hours ago, with its bytes. */
  async function newFile(hours = 0) {
    const [id, blob] = [Bun.randomUUIDv7(), Bun.randomUUIDv7()];
    await put(blob, hours);
    await put(previewOf(blob), hours);
    const about = { id, owner_id: ada.id, conversation_id: chat.id, name: "a", size: 5 };
    const none = { width: null, height: null, duration_ms: null, placeholder: null };
    const content = { ...none, blob, type: "text/plain", size: 5 };
    await store.write(async (tx) => {
      await tx.insertFile(
        { ...about, at: hoursAgo(hours) },
        { person_id: about.owner_id, day: "2026-11-15", bytes: 5 },
      );
      await tx.finishFile(id, content);
    });
    return { id, blob };
  }

  const sendFile = (id: string) =>
    store.write(async (tx) => {
      const files = await tx.files([id]);
      const message = await send(tx, chat, ada, "", { files });
      await tx.attachFiles([id], message.id, Date.now());
      return message;
    });

  return {
    ...{ store, blobs, pathOf, put, newFile, sendFile, edits },
    status: async (id: string) => (await store.read((tx) => tx.files([id])))[0]?.status,
    async names() {
      const names: string[] = [];
      for await (const { name } of blobs.list()) names.push(name);
      return names.sort();
    },
  };
}

const messageDeleted = { kind: "event", name: "events.messageDeleted" } as Delivered;

type Settings = { node?: string; isShared?: boolean; figures?: ReturnType<typeof createMetrics> };

const start = (store: Store, blobs: Blobs, settings: Settings = {}) => {
  const { node = "one", isShared = true, figures = createMetrics() } = settings;
  return maintainFiles({
    ...{ store, blobs, node, isShared },
    log: createLogger("silent"),
    metrics: figures,
  });
};

/** Runs everything once: stopping waits for what has begun. */
async function runOnce(store: Store, blobs: Blobs, settings?: Settings) {
  const figures = createMetrics();
  const maintenance = start(store, blobs, { figures, ...settings });
  await until(() => /^parley_file_objects \d/m.test(figures.text()), "the checks have run");
  await maintenance.stop();
  return figures.text();
}

describe("file maintenance", () => {
  test("deletes the bytes of deleted messages, previews too", async () => {
    const { store, blobs, newFile, sendFile, names } = await installation("abandoned");
    const [gone, kept] = [await newFile(), await newFile()];
    const message = await sendFile(gone.id);
    await sendFile(kept.id);
    await store.write((tx) => remove(tx, [message]));
    const others = ["one", "two"].map((node) => start(store, blobs, { node }));
    await until(async () => (await names()).length === 2, "the bytes are deleted");
    expect(await names()).toEqual([kept.blob, previewOf(kept.blob)]);
    await until(
      async () => (await store.read((tx) => tx.abandonedBlobs(1))).length === 0,
      "the blobs are forgotten",
    );
    for (const each of others) await each.stop();
    await store.close();
  });

  test("deletes uploads that nothing has used for a day", async () => {
    const { store, blobs, newFile, sendFile, names, status } = await installation("unused");
    const [used, old, young] = [await newFile(25), await newFile(25), await newFile(23)];
    await sendFile(used.id);
    await runOnce(store, blobs);
    expect(await status(old.id)).toBeUndefined();
    const maintenance = start(store, blobs);
    await until(async () => (await names()).length === 4, "the bytes are deleted");
    await maintenance.stop();
    const left = [used.blob, young.blob].flatMap((blob) => [blob, previewOf(blob)]);
    expect(await names()).toEqual(left.sort());
    await store.close();
  });

  test("deletes old objects without a row, and counts the others", async () => {
    const { store, blobs, put, newFile, names } = await installation("unknown");
    const { blob } = await newFile(10);
    const unknown = Bun.randomUUIDv7();
    for (const name of [unknown, previewOf(unknown)]) await put(name, 7);
    const recent = Bun.randomUUIDv7();
    await put(recent, 5);
    const foreign = "somebody-elses-object-of-many-characters";
    await put(foreign, 100);
    const figures = await runOnce(store, blobs);
    expect(await names()).toEqual([blob, previewOf(blob), recent, foreign].sort());
    expect(figures).toMatch(/^parley_file_objects 5$/m);
    expect(figures).toMatch(/^parley_file_bytes 25$/m);
    await store.close();
  });

  test("deletes nothing from a storage whose objects are mostly unknown", async () => {
    const { store, blobs, put, newFile, names } = await installation("other");
    await newFile(10);
    for (let made = 0; made < 120; made++) await put(Bun.randomUUIDv7(), 10);
    const maintenance = start(store, blobs);
    await until(
      () => maintenance.background.failing().includes("file_checks"),
      "the checks have failed",
    );
    await maintenance.stop();
    expect(await names()).toHaveLength(122);
    expect(maintenance.background.failures().get("file_checks")).toBe(1);
    await store.close();
  });

  test("deletes nothing from a large storage of another installation", async () => {
    const { store, blobs } = await installation("large");
    const deleted: string[] = [];
    const foreign: Blobs = {
      ...blobs,
      async *list() {
        for (let made = 0; made < 30_000; made++) {
          yield { name: Bun.randomUUIDv7(), size: 5, modifiedAt: hoursAgo(10) };
        }
      },
      delete: async (name) => void deleted.push(name),
    };
    const maintenance = start(store, foreign);
    const hasFailed = () => maintenance.background.failing().includes("file_checks");
    await until(() => hasFailed() || deleted.length > 0, "the checks have failed");
    await maintenance.stop();
    expect(deleted).toEqual([]);
    await store.close();
  });

  test("marks files whose bytes are missing, until they are found again, and tells clients", async () => {
    const { store, blobs, put, newFile, sendFile, status, edits } = await installation("missing");
    const [lost, kept, unsent] = [await newFile(), await newFile(), await newFile()];
    const message = await sendFile(lost.id);
    await sendFile(kept.id);
    for (const { blob } of [lost, unsent]) await blobs.delete(blob);
    await runOnce(store, blobs);
    await until(async () => (await status(unsent.id)) === "failed", "the files are marked");
    expect(await status(lost.id)).toBe("failed");
    expect(await status(kept.id)).toBe("ready");
    const [shown] = await store.read((tx) => tx.messageViews([message.id], NOBODY));
    expect(shown?.files).toMatchObject([{ id: lost.id, status: "failed" }]);
    expect(edits.map(({ params, at }) => [params, at?.seq])).toEqual([[shown, shown?.version]]);
    await put(lost.blob);
    await runOnce(store, blobs);
    await until(async () => (await status(lost.id)) === "ready", "the file is ready again");
    expect(edits[1]?.params).toMatchObject({ id: message.id, files: [{ status: "ready" }] });
    expect(edits).toHaveLength(2);
    await store.close();
  });

  test("deletes what interrupted uploads have left, but none in progress", async () => {
    const { store, blobs } = await installation("interrupted");
    const leave = (name: string, hours: number) => {
      const path = join(blobs.incoming, name);
      writeFileSync(path, "half");
      utimesSync(path, hoursAgo(hours) / 1000, hoursAgo(hours) / 1000);
    };
    leave("old", 3);
    leave("new", 1);
    await runOnce(store, blobs);
    expect(readdirSync(blobs.incoming)).toEqual(["new"]);
    // A process that has the folder for itself finds only what an earlier one has left.
    await runOnce(store, blobs, { isShared: false });
    expect(readdirSync(blobs.incoming)).toEqual([]);
    await store.close();
  });

  test("reports a storage that is away, and goes on when it is back", async () => {
    const { store, blobs, newFile, sendFile, names } = await installation("away");
    const message = await sendFile((await newFile()).id);
    await store.write((tx) => remove(tx, [message]));
    let isAway = true;
    const flaky: Blobs = {
      ...blobs,
      delete: (name) => (isAway ? Promise.reject(new Error("away")) : blobs.delete(name)),
    };
    const maintenance = start(store, flaky);
    const { background } = maintenance;
    await until(() => background.failing().includes("file_deletion"), "the deletion has failed");
    isAway = false;
    maintenance.receive(messageDeleted);
    await until(() => background.failing().length === 0, "the deletion has recovered");
    expect(await names()).toEqual([]);
    await maintenance.stop();
    await store.close();
  });

  test("tries again with one timer while another node deletes", async () => {
    const { store, blobs } = await installation("claimed");
    let claims = 0;
    const claimed = {
      read: async (work: (tx: never) => unknown) =>
        work({ abandonedBlobs: () => ["blob"] } as never),
      write: async () => {
        claims++;
        return null;
      },
    } as unknown as Store;
    const timers = spyOn(globalThis, "setTimeout");
    const cleared = spyOn(globalThis, "clearTimeout");
    const maintenance = start(claimed, blobs);
    for (let deletions = 1; deletions <= 5; deletions++) {
      const before = claims;
      maintenance.receive(messageDeleted);
      await until(() => claims > before, "the deletion is tried");
    }
    await maintenance.stop();
    const retries = timers.mock.results.filter(
      (_, place) => timers.mock.calls[place]?.[1] === 12_000,
    );
    const gone = new Set<unknown>(cleared.mock.calls.map(([timer]) => timer));
    timers.mockRestore();
    cleared.mockRestore();
    await store.close();
    expect(retries.length).toBeGreaterThan(1);
    expect(retries.filter(({ value }) => !gone.has(value))).toEqual([]);
  });
});
