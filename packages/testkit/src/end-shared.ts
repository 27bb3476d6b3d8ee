/** Loaded before the tests of each process: ends what its files have shared, after the last file. */
import { afterAll } from "bun:test";
import { endShared } from "./shared.ts";

const HANG_MS = 60_000;

afterAll(endShared, HANG_MS);
