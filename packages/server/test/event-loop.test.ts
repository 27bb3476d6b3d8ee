import { expect, test } from "bun:test";
import { loopShares } from "../src/store/event-loop.ts";

/** Ten callers that are woken at once and each take `ms` of a clock of their own. */
async function wakeTen(ms: number) {
  let time = 0;
  let iteration = 0;
  let isDone = false;
  const iterate = () => {
    iteration++;
    if (!isDone) setImmediate(iterate);
  };
  iterate();
  const share = loopShares(() => time);
  const resumed: { caller: number; iteration: number }[] = [];
  const caller = async (place: number) => {
    await share();
    time += ms;
    resumed.push({ caller: place, iteration });
  };
  await Promise.all(Array.from({ length: 10 }, (_, place) => caller(place)));
  isDone = true;
  return {
    order: resumed.map((each) => each.caller),
    perIteration: [...Map.groupBy(resumed, (each) => each.iteration).values()].map(
      ({ length }) => length,
    ),
  };
}

test("the event loop runs other work between callers that take long", async () => {
  const { order, perIteration } = await wakeTen(20);
  expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  expect(perIteration).toEqual([1, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
});

test("callers share an iteration of the event loop until its time is used up", async () => {
  const { perIteration } = await wakeTen(4);
  expect(perIteration).toEqual([3, 3, 3, 1]);
});

test("callers that take no time cost no iterations of the event loop", async () => {
  const { perIteration } = await wakeTen(0);
  expect(perIteration).toEqual([10]);
});
