import { describe, expect, test } from "bun:test";
import { Backend, serviceKeySetting } from "@parley/testkit/backend.ts";
import { post, Socket, signUp } from "@parley/testkit/client.ts";
import { databaseOf } from "@parley/testkit/database.ts";
import { startNats } from "@parley/testkit/nats.ts";
import { startPostgres } from "@parley/testkit/postgres.ts";
import {
  type Environment,
  spawnMain,
  startServer,
  type TestServer,
} from "@parley/testkit/server.ts";

const HOUR_MS = 60 * 60 * 1000;
const DAY_MS = 24 * HOUR_MS;

/** Resets a password in a second process while the server runs. */
async function resetPassword(env: Environment, username: string): Promise<void> {
  const child = spawnMain(env, ["password", "reset", username]);
  expect(await child.exited).toBe(0);
}

function sessionCount(server: TestServer) {
  using db = databaseOf(server);
  return db.query<{ n: number }, []>("SELECT count(*) AS n FROM sessions").get()?.n;
}

describe("a password reset by an operator closes the sockets of that person only", () => {
  async function closes(server: TestServer, env: Environment): Promise<void> {
    const [alice, bob] = [await signUp(server.url, "alice"), await signUp(server.url, "bob")];
    await using socket = await alice.connect();
    await using other = await bob.connect();
    await resetPassword(env, alice.username);
    await socket.until(() => socket.closed, "close");
    expect(socket.closed?.code).toBe(4401);
    expect((await post(server.url, "getMe", {}, alice.token)).status).toBe(401);
    expect(await other.call("getMe")).toMatchObject(bob.account);
  }

  test("on SQLite", async () => {
    await using server = await startServer();
    await closes(server, { PARLEY_DATA: server.dataDir });
  });

  test("on PostgreSQL, one node or several", async () => {
    await using postgres = await startPostgres();
    await using nats = await startNats();
    const env = {
      DATABASE_URL: postgres.url,
      PARLEY_MASTER_KEY: Buffer.alloc(32, 7).toString("base64"),
    };
    await using alone = await startServer(env);
    await closes(alone, env);
    await alone.stop();
    await using node = await startServer({ ...env, NATS_URL: nats.url });
    await closes(node, env);
  });
});

describe("a session", () => {
  test("ends 90 days after sign-in, even if it is used", async () => {
    await using server = await startServer();
    const alice = await signUp(server.url, "alice");
    for (let days = 0; days < 90; days += 15) {
      expect((await post(server.url, "getMe", {}, alice.token)).status).toBe(200);
      await server.moveClock(15 * DAY_MS);
    }
    expect((await post(server.url, "getMe", {}, alice.token)).status).toBe(401);
  });

  test("ends 30 days after its last use", async () => {
    await using server = await startServer();
    const [alice, bob] = [await signUp(server.url, "alice"), await signUp(server.url, "bob")];
    await server.moveClock(15 * DAY_MS);
    expect((await post(server.url, "getMe", {}, bob.token)).status).toBe(200);
    await server.moveClock(15 * DAY_MS);
    expect((await post(server.url, "getMe", {}, alice.token)).status).toBe(401);
    expect((await post(server.url, "getMe", {}, bob.token)).status).toBe(200);
  });

  test("of issueToken closes its sockets when its token ends, however they are used", async () => {
    await using server = await startServer(serviceKeySetting());
    const alice = await signUp(server.url, "alice");
    const { username } = alice;
    const backend = new Backend(server.url);
    const issued = await backend.call("issueToken", { username, expires_in: 60 });
    await using socket = await Socket.open(server.url, issued.access_token);
    await using other = await alice.connect();
    for (let times = 0; times < 4; times++) {
      expect(await socket.call("getMe")).toMatchObject(alice.account);
      await server.moveClock(10_000);
    }
    expect(socket.closed).toBeNull();
    await server.moveClock(20_000);
    await socket.until(() => socket.closed, "close");
    expect(socket.closed?.code).toBe(4401);
    expect((await post(server.url, "getMe", {}, issued.access_token)).status).toBe(401);
    expect(await other.call("getMe")).toMatchObject(alice.account);
  });

  test("that was ended is deleted once its token has expired", async () => {
    await using server = await startServer();
    const alice = await signUp(server.url, "alice");
    const bob = await signUp(server.url, "bob");
    await alice.call("signOut");
    expect(sessionCount(server)).toBe(2);
    await server.moveClock(15 * DAY_MS);
    await bob.call("getMe");
    expect(sessionCount(server)).toBe(2);
    await server.moveClock(15 * DAY_MS);
    const isDeleted = () => sessionCount(server) === 1;
    await server.moveClockUntil(isDeleted, "the session is deleted", HOUR_MS);
    expect((await post(server.url, "getMe", {}, alice.token)).status).toBe(401);
  });
});
