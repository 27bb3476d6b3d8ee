import { afterAll, beforeAll, expect, test } from "bun:test";
import { groupOf, type Person, people } from "@parley/testkit/client.ts";
import { pngOf, uploadPicture } from "@parley/testkit/files.ts";
import { startServer, type TestServer } from "@parley/testkit/server.ts";
import { Profiles } from "../src/files/profiles.ts";
import type { Client, Profile } from "../src/index.ts";
import { clientOf, connected } from "./support/clients.ts";

let server: TestServer;
let ann: Person;
let bob: Person;
beforeAll(async () => {
  server = await startServer();
  [ann, bob] = await people(server.url, "ann", "bob");
  await groupOf(ann, bob);
});
afterAll(() => server[Symbol.asyncDispose]());

/** Watches a profile until it is as wanted. */
function profileWhen(
  { profiles }: Client,
  username: string,
  isWanted: (profile: Profile) => boolean,
): Promise<Profile> {
  const { promise, resolve } = Promise.withResolvers<Profile>();
  const check = () => {
    const profile = profiles.peek(username);
    if (profile && isWanted(profile)) resolve(profile);
  };
  const stop = profiles.watch(username, check);
  check();
  return promise.finally(stop);
}

const setPicture = async (person: Person) =>
  person.call("setAvatar", { file_id: (await uploadPicture(person)).id });

test("profiles that are watched at the same time are fetched by one call", async () => {
  const calls: string[] = [];
  const counting = (async (url: string, init: RequestInit) => {
    calls.push(`${new URL(url).pathname} ${init.body}`);
    return fetch(url, init);
  }) as unknown as typeof fetch;
  using client = clientOf(ann, server.url, { fetch: counting });
  const names = [ann.username, bob.username];
  const [own, other] = await Promise.all(
    names.map((name) => profileWhen(client, name, () => true)),
  );
  expect([own?.account.username, other?.picture_url]).toEqual([ann.username, null]);
  await profileWhen(client, bob.username, () => true);
  expect(calls).toEqual([`/api/getProfiles ${JSON.stringify({ usernames: names })}`]);
});

test("a new picture shows, and so does its removal", async () => {
  using client = await connected(ann, server.url);
  await profileWhen(client, bob.username, ({ picture_url }) => picture_url === null);
  const shown = profileWhen(client, bob.username, ({ picture_url }) => picture_url !== null);
  const { version } = await setPicture(bob);
  const profile = await shown;
  expect(profile.account.version).toBe(version);
  expect((await fetch(profile.preview_url ?? "")).status).toBe(200);
  const gone = profileWhen(client, bob.username, ({ picture_url }) => picture_url === null);
  await bob.call("setAvatar", { file_id: null });
  await gone;
});

test("a picture that was set while the client was away shows when it is back", async () => {
  using client = await connected(ann, server.url);
  await profileWhen(client, bob.username, () => true);
  client.close();
  const { version } = await setPicture(bob);
  await client.connect();
  const profile = await profileWhen(client, bob.username, (each) => each.picture_url !== null);
  expect(profile.account.version).toBe(version);
});

test("a picture is uploaded for an account or a group", async () => {
  using client = await connected(bob, server.url);
  const file = await client.uploadPicture(new File([await pngOf(600)], "me.png"));
  expect(file).toMatchObject({ name: "me.png", width: 512, status: "ready" });
  await client.setAvatar({ file_id: file.id });
  const { id } = await groupOf(bob, ann);
  const other = await client.uploadPicture(new Blob([await pngOf()]));
  expect((await client.setChatPicture({ chat_id: id, file_id: other.id })).picture_id).toBe(
    other.id,
  );
});

test("names that nobody has are asked for once", async () => {
  const calls: string[] = [];
  const counting = (async (url: string, init: RequestInit) => {
    calls.push(url);
    return fetch(url, init);
  }) as unknown as typeof fetch;
  using client = clientOf(ann, server.url, { fetch: counting });
  client.profiles.watch("nobody_at_all", () => {});
  await profileWhen(client, ann.username, () => true);
  await client.getMe();
  expect(calls.filter((url) => url.endsWith("/getProfiles"))).toHaveLength(1);
});

test("the profile of an account that the service no longer has is gone, and asked for once", async () => {
  const asked: string[][] = [];
  let version = 1;
  const known = (username: string): Profile => ({
    account: { username, kind: "human", display_name: username, version },
    picture_url: null,
    preview_url: null,
    expires_at: null,
  });
  const profiles = new Profiles({
    api: {
      getProfiles: async ({ usernames }) => {
        asked.push(usernames.toSorted());
        const found = usernames.filter((username) => username !== "ann" || version === 1);
        return { items: found.map(known) };
      },
    },
    reachability: { canCall: () => true, whenReachable: async () => {} },
    resolve: (link) => link,
    versionOf: () => version,
  });
  const changed = (username: string) =>
    new Promise<void>((resolve) => void profiles.watch(username, resolve));
  await changed("ann");
  version = 2;
  profiles.refresh();
  await changed("bob");
  await changed("carol");
  expect(asked).toEqual([["ann"], ["ann", "bob"], ["carol"]]);
  expect(profiles.peek("ann")).toBeUndefined();
});
