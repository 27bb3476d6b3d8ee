import { beforeAll, expect, test } from "bun:test";
import { groupOf, people } from "@parley/testkit/client.ts";
import type { TestServer } from "@parley/testkit/server.ts";
import { sharedServer } from "@parley/testkit/shared-server.ts";
import { codeOf, connected, memoryStorage, type TestClient, until } from "./support/clients.ts";

const PASSWORD = "correct horse battery";

let server: TestServer;
beforeAll(async () => {
  server = await sharedServer();
});
/** Delivers the reply to `deleteMe` only after the client has lost its session. */
function lateDeletion() {
  const { promise: opened, resolve: open } = Promise.withResolvers<TestClient>();
  const send = (async (url: string, request: RequestInit) => {
    const response = await fetch(url, request);
    const client = await opened;
    if (url.endsWith("/deleteMe") && response.ok) {
      await until(client, "status", () => client.status === "signed_out");
    }
    return response;
  }) as typeof fetch;
  return { fetch: send, open };
}

test("deleting the account succeeds and forgets everything, also if the session ends before the reply", async () => {
  const [cat, dan] = await people(server.url, "cat", "dan");
  const { id } = await groupOf(cat, dan);
  const storage = memoryStorage();
  const late = lateDeletion();
  using client = await connected(cat, server.url, { storage, fetch: late.fetch });
  late.open(client);
  client.model.setDraft(id, "half a thought");
  expect(storage.items.size).toBe(1);
  await client.deleteMe({ password: PASSWORD });
  expect(client.status).toBe("signed_out");
  expect(client.token).toBeNull();
  expect([...storage.items.keys()]).toEqual([]);
});

test("a refused deletion of the account forgets nothing", async () => {
  const [cat, dan] = await people(server.url, "cat", "dan");
  const { id } = await groupOf(cat, dan);
  const storage = memoryStorage();
  using client = await connected(cat, server.url, { storage });
  client.model.setDraft(id, "half a thought");
  expect(await codeOf(client.deleteMe({ password: "not this one" }))).toBe("forbidden");
  expect(client.status).toBe("online");
  expect([...storage.items.keys()]).toEqual([`parley:drafts:${cat.username}`]);
});
