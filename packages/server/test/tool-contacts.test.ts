import { expect, test } from "bun:test";
import { until } from "@parley/testkit/until.ts";
import type { Connection } from "../src/agents/tools/connection.ts";
import { createContacts, type KnownServer } from "../src/agents/tools/contacts.ts";
import { createLogger } from "../src/observe/log.ts";
import type { ToolRecord } from "../src/store/tools.ts";

const timeouts = { contactMs: 20_000, refreshMs: 20_000, callMs: 20_000, elicitMs: 20_000 };
const { signal } = new AbortController();

const tool = (name: string): ToolRecord => ({
  name,
  title: "",
  description: "",
  input_schema: { type: "object" },
  fingerprint: name,
});

/** A server that answers each listing when the test says so, with the tools that it had when it was asked. */
function slowServer() {
  const listings: { end(): void }[] = [];
  const saved: string[][] = [];
  let tools: ToolRecord[] = [];
  const connection: Connection = {
    listTools: () => {
      const { promise, resolve } = Promise.withResolvers<ToolRecord[]>();
      const asked = tools;
      listings.push({ end: () => resolve(asked) });
      return promise;
    },
    callTool: async () => ({ text: "", is_error: false }),
    hasFailed: false,
    isUsable: true,
    onListChanged: () => {},
    close: async () => {},
  };
  const server: KnownServer = {
    id: "server",
    key: "server",
    owner_id: 1,
    name: "slow",
    url: null,
    status: "ready",
    error: null,
    tools: [],
    contacted_at: null,
    operator: false,
    connect: async () => connection,
    save: async (state) => void saved.push((state.tools ?? []).map(({ name }) => name)),
  };
  /** The server has other tools, and says so. */
  const change = (...names: string[]) => {
    tools = names.map(tool);
    connection.onListChanged();
  };
  /** Ends a listing once it has begun. */
  const end = async (place: number) => {
    await until(() => listings.length > place, "a listing");
    listings[place]?.end();
  };
  return { server, saved, listings, change, end };
}

test("tools that change while they are listed are listed again, once", async () => {
  const { server, saved, listings, change, end } = slowServer();
  const all = createContacts({ timeouts, log: createLogger("silent") });
  const first = all.refresh(server, signal);
  await end(0);
  await first;
  change("one");
  change("one", "two");
  change("one", "two", "three");
  await end(1);
  await end(2);
  await until(() => saved.length === 3, "the last list");
  expect(saved).toEqual([[], ["one"], ["one", "two", "three"]]);
  expect(listings).toHaveLength(3);
  await all.close();
});

test("tools that change while a server is first asked for them are listed again", async () => {
  const { server, saved, listings, change, end } = slowServer();
  const all = createContacts({ timeouts, log: createLogger("silent") });
  const first = all.refresh(server, signal);
  await until(() => listings.length > 0, "a listing");
  change("one");
  await end(0);
  await first;
  await end(1);
  await until(() => saved.length === 2, "the last list");
  expect(saved).toEqual([[], ["one"]]);
  await all.close();
});
