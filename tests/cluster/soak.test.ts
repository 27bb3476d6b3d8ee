import { expect, test } from "bun:test";
import { soak } from "./soak.ts";

const SECONDS = 25;

test("under random faults, every answer and event that clients receive is true", async () => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  expect(await soak({ seconds: SECONDS, seed }), `with seed ${seed}`).toEqual([]);
});
