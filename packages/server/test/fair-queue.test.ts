import { expect, test } from "bun:test";
import { createFairQueue } from "../src/security/fair-queue.ts";

/** A queue that runs one at a time, and the order in which work began. */
function counter(waiting = 6) {
  const enter = createFairQueue({ running: 1, waiting, full: () => new Error("full") });
  const begun: string[] = [];
  const gate = Promise.withResolvers<void>();
  const come = (key: string, name = key) =>
    enter(key, async () => {
      begun.push(name);
      await gate.promise;
      return name;
    });
  return { come, begun, open: gate.resolve };
}

const outcome = (work: Promise<string>) => work.catch((error: Error) => error.message);

test("keys take turns, regardless of how many tasks each has waiting", async () => {
  const { come, begun, open } = counter();
  const all = [come("busy", "1"), come("busy", "2"), come("busy", "3"), come("other", "4")];
  open();
  await Promise.all(all);
  expect(begun).toEqual(["1", "2", "4", "3"]);
});

test("large tasks do not hold up small ones of other keys", async () => {
  const enter = createFairQueue({ running: 1, waiting: 6, full: () => new Error("full") });
  const begun: string[] = [];
  const gate = Promise.withResolvers<void>();
  const come = (key: string, work: number) =>
    enter(
      key,
      async () => {
        begun.push(`${key} ${work}`);
        await gate.promise;
      },
      undefined,
      work,
    );
  const all = [come("first", 50), come("one", 50), come("one", 49), come("two", 48)];
  all.push(come("small", 5), come("small", 6), come("small", 50));
  gate.resolve();
  await Promise.all(all);
  expect(begun).toEqual([
    "first 50",
    "small 5",
    "small 6",
    "two 48",
    "one 50",
    "small 50",
    "one 49",
  ]);
});

test("when the queue is full, the key with the most waiting tasks loses its latest to another key", async () => {
  const { come, begun, open } = counter(3);
  const busy = ["1", "2", "3", "4"].map((name) => outcome(come("busy", name)));
  const late = outcome(come("busy", "5"));
  const other = outcome(come("other", "6"));
  open();
  expect(await late).toBe("full");
  expect(await other).toBe("6");
  expect(await Promise.all(busy)).toEqual(["1", "2", "3", "full"]);
  expect(begun).toEqual(["1", "2", "6", "3"]);
});

test("a task whose signal aborts while it waits never starts, and leaves its place", async () => {
  const enter = createFairQueue({ running: 1, waiting: 1, full: () => new Error("full") });
  const gate = Promise.withResolvers<string>();
  const first = enter("one", () => gate.promise);
  const abort = new AbortController();
  const begun: string[] = [];
  const begin = (name: string) => async () => {
    begun.push(name);
    return name;
  };
  const second = outcome(enter("one", begin("second"), abort.signal));
  abort.abort(new Error("aborted"));
  expect(await second).toBe("aborted");
  const third = enter("two", begin("third"));
  gate.resolve("first");
  expect(await Promise.all([first, third])).toEqual(["first", "third"]);
  expect(begun).toEqual(["third"]);
  expect(await outcome(enter("one", begin("fourth"), abort.signal))).toBe("aborted");
});

test("the next task starts after one that fails", async () => {
  const enter = createFairQueue({ running: 1, waiting: 5, full: () => new Error("full") });
  const failing = enter("a", () => Promise.reject(new Error("no")));
  const next = enter("a", async () => "yes");
  await expect(failing).rejects.toThrow("no");
  expect(await next).toBe("yes");
});
