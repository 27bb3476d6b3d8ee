import { serviceKeySetting } from "./backend.ts";
import { noRates, startServer, type TestServer } from "./server.ts";
import { shared } from "./shared.ts";

/**
 * One server without rates for all test files of this process, which tell their people apart by name.
 * Whoever moves its clock, stops it or counts all that it has needs a server of their own.
 */
export const sharedServer = (): Promise<TestServer> =>
  shared("server", () => startServer({ ...noRates, ...serviceKeySetting() }));
