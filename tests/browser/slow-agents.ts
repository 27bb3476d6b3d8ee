import { afterAll, beforeAll } from "bun:test";
import { type Person, signUp } from "@parley/testkit/client.ts";
import { goesOn } from "@parley/testkit/provider-responders.ts";
import { providersAt, startProvider } from "@parley/testkit/provider-server.ts";
import { noRates, startServer, type TestServer } from "@parley/testkit/server.ts";
import { newKey } from "@parley/testkit/turns.ts";

/**
 * A server for all tests of a file, and a function that signs somebody up there whose agents answer until
 * they are stopped. The slow answer of the sandbox ends after some seconds, which a busy machine needs.
 */
export function slowAgents(): (name: string) => Promise<Person> {
  let server: TestServer;
  let provider: Awaited<ReturnType<typeof startProvider>>;
  beforeAll(async () => {
    provider = await startProvider(goesOn("I am in no hurry. It goes on ", "and on "));
    const limits = { max_output_tokens: 1000, context_tokens: 20_000 };
    server = await startServer({ ...noRates, ...providersAt(provider.url, limits) });
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    await provider[Symbol.asyncDispose]();
  });
  return async (name) => {
    const person = await signUp(server.url, name);
    await newKey(person);
    return person;
  };
}
