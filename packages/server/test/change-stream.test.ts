import { expect, test } from "bun:test";
import pino from "pino";
import { createMemoryBus } from "../src/changes/bus-memory.ts";
import type { Change, LoggedChange } from "../src/changes/change.ts";
import { alone } from "../src/changes/cluster.ts";
import { replayable } from "../src/changes/replay.ts";
import { openChangeStream } from "../src/changes/stream.ts";
import type { ReadTx, Store } from "../src/store/store.ts";

const log = pino({ level: "silent" });

/** A change stream over a log that stays empty. */
async function emptyStream({ ready = async () => {} } = {}) {
  let commit: (changes: readonly Change[]) => void = () => {};
  let reads = 0;
  const store = {
    changes: {
      head: async () => 0,
      read: async () => {
        reads++;
        return [];
      },
    },
    onCommit: (listener: typeof commit) => {
      commit = listener;
    },
  } as Partial<Store> as Store;
  const bus = { ...createMemoryBus(), ready };
  const options = { store, bus, cluster: alone, node: "one", log, everyMs: 1 };
  const changes = await openChangeStream(options);
  return { changes, commit: (...made: Change[]) => commit(made), reads: () => reads };
}

test("a change whose delivery fails keeps no other one of its commit back", async () => {
  const { changes, commit } = await emptyStream();
  const ended: string[] = [];
  changes.listen((change) => {
    if (change.kind === "turns_queued") throw new Error("a listener failed");
  });
  changes.listen(
    (change) => void (change.kind === "session_ended" && ended.push(change.session_id)),
  );
  commit({ kind: "turns_queued" }, { kind: "session_ended", session_id: "a" });
  expect(ended).toEqual(["a"]);
  await changes.stop();
});

test("the log is not read any more once the stream has stopped", async () => {
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<void>();
  const ready = () => {
    asked.resolve();
    return answer.promise;
  };
  const { changes, reads } = await emptyStream({ ready });
  await asked.promise;
  await changes.stop();
  answer.resolve();
  await Bun.sleep(5);
  expect(reads()).toBe(0);
});

test("an event about a message that was deleted since is replayed as its deletion", async () => {
  const at = { conversation_id: "chat", seq: 3 };
  const frame = { method: "events.messageComplete", params: { id: "message", content: "" }, at };
  const logged: LoggedChange = {
    kind: "event",
    name: "events.messageComplete",
    delivery: "counted",
    to: { conversation: "chat" },
    at,
    shows: "message",
    data: JSON.stringify(frame),
  };
  const tx = { messageViews: async () => [] } as Partial<ReadTx> as ReadTx;
  const [change] = await replayable(tx, [logged]);
  const method = "events.messageDeleted";
  const params = { conversation_id: "chat", ids: ["message"] };
  expect(change).toMatchObject({ name: method, data: JSON.stringify({ method, params, at }) });
});
