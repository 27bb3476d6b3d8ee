import type { Database } from "bun:sqlite";
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

const DAY_MS = 24 * 60 * 60 * 1000;

/** Resets a password in a second process while the server runs. */
async function resetPassword(env: Environment, username: string): Promise<void> {
  const child = spawnMain(env, ["password", "reset", username]);
  expect(await child.exited).toBe(0);
}

function onDatabase<Result>(server: TestServer, work: (db: Database) => Result): Result {
  using db = databaseOf(server);
  return work(db);
}

const sessionCount = (server: TestServer) =>
  onDatabase(server, (db) =>
    db.query<{ n: number }, []>("SELECT count(*) AS n FROM sessions").get(),
  )?.n;

describe("a password reset by an operator closes the sockets of that person only", () => {
  async function closes(server: TestServer, env: Environment): Promise<void> {
    const [alice, bob] = [await signUp(server.url, "alice"), await signUp(server.url, "bob")];
    await using socket = await alice.connect();
    await using other = await bob.connect();
    await resetPassword(env, alice.username);
    await socket.until(() => socket.closed, "close");
    expect(socket.closed?.code).toBe(4401);
    expect((await post(server.url, "getMe", {}, alice.token)).status).toBe(401);
    expect(await other.call("getMe")).toEqual(bob.account);
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
    const [alice, bob] = [await signUp(server.url, "alice"), await signUp(server.url, "bob")];
    await server.stop();
    onDatabase(server, (db) => {
      const age = db.query(
        `UPDATE sessions SET created_at = created_at - ?, last_used_at = last_used_at - ${DAY_MS}
         WHERE account_id = (SELECT id FROM accounts WHERE username = ?)`,
      );
      age.run(90 * DAY_MS, alice.username);
      age.run(89 * DAY_MS, bob.username);
    });
    await server.restart();
    expect((await post(server.url, "getMe", {}, alice.token)).status).toBe(401);
    expect((await post(server.url, "getMe", {}, bob.token)).status).toBe(200);
    const end = onDatabase(server, (db) =>
      db
        .query<{ created_at: number; expires_at: number }, [string]>(
          `SELECT created_at, expires_at FROM sessions
           WHERE account_id = (SELECT id FROM accounts WHERE username = ?)`,
        )
        .get(bob.username),
    );
    expect((end?.expires_at ?? 0) - (end?.created_at ?? 0)).toBe(90 * DAY_MS);
  });

  test("of issueToken closes its sockets when its token ends, however they are used", async () => {
    await using server = await startServer(serviceKeySetting());
    const alice = await signUp(server.url, "alice");
    const { username } = alice;
    const backend = new Backend(server.url);
    const issued = await backend.call("issueToken", { username, expires_in: 60 });
    const end = Date.now() + 20_000;
    // `issueToken` issues none that ends so soon.
    onDatabase(server, (db) => db.run(`UPDATE sessions SET expires_at = ${end} WHERE fixed`));
    await using socket = await Socket.open(server.url, issued.access_token);
    await using other = await alice.connect();
    while (socket.closed === null && Date.now() < end) {
      const me = await socket.call("getMe").catch((error: unknown) => error);
      // An answer may come after the end.
      if (Date.now() < end) expect(me).toEqual(alice.account);
      await Bun.sleep(200);
    }
    await socket.until(() => socket.closed, "close");
    expect(socket.closed?.code).toBe(4401);
    expect(Date.now()).toBeGreaterThanOrEqual(end);
    expect((await post(server.url, "getMe", {}, issued.access_token)).status).toBe(401);
    expect(await other.call("getMe")).toEqual(alice.account);
  });

  test("that was ended is deleted once its token has expired", async () => {
    await using server = await startServer();
    const alice = await signUp(server.url, "alice");
    await signUp(server.url, "bob");
    await alice.call("signOut");
    await server.stop();
    expect(sessionCount(server)).toBe(2);
    onDatabase(server, (db) =>
      db.run(`UPDATE sessions SET expires_at = ${Date.now() - 1} WHERE ended_at IS NOT NULL`),
    );
    await server.restart();
    while (sessionCount(server) !== 1) await Bun.sleep(50);
    expect((await post(server.url, "getMe", {}, alice.token)).status).toBe(401);
  });
});
