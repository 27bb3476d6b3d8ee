/**
 * Builds the program of the test servers: `bun build-program.ts <file>`. It is the executable, with two
 * differences: hashing a password takes almost no time, because the tests sign up thousands of people and
 * would spend most of their CPU time on it; and its clock can be moved.
 */
import { join } from "node:path";
import type { BunPlugin } from "bun";
import { buildExecutable } from "../../../scripts/build-executable.ts";

const COST = "memoryCost: 19_456, timeCost: 2";
const LOWEST_COST = "memoryCost: 8, timeCost: 1";

const cheapPasswords: BunPlugin = {
  name: "cheap-passwords",
  setup: (build) => {
    build.onLoad({ filter: /[\\/]security[\\/]passwords\.ts$/ }, async ({ path }) => {
      const source = await Bun.file(path).text();
      if (!source.includes(COST)) throw new Error(`${path} does not contain «${COST}»`);
      return { contents: source.replace(COST, LOWEST_COST), loader: "ts" };
    });
  },
};

const movableClock: BunPlugin = {
  name: "movable-clock",
  setup: (build) => {
    build.onLoad({ filter: /[\\/]server[\\/]src[\\/]main\.ts$/ }, async ({ path }) => {
      const clock = JSON.stringify(join(import.meta.dir, "movable-clock.ts"));
      const source = await Bun.file(path).text();
      return { contents: source.replace(/^#!.*/, `import ${clock};`), loader: "ts" };
    });
  },
};

const [outfile] = process.argv.slice(2);
if (outfile === undefined) throw new Error("the file to build is missing");
await buildExecutable(outfile, [cheapPasswords, movableClock]);
