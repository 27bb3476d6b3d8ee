import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { closeCodes } from "@parley/protocol";
import { addSecondFactor } from "@parley/testkit/authenticator.ts";
import { post, signUp } from "@parley/testkit/client.ts";
import { type SharedPostgres, sharedPostgres } from "@parley/testkit/postgres.ts";
import { type Environment, runMain, startServer } from "@parley/testkit/server.ts";

let postgres: SharedPostgres;
beforeAll(async () => {
  postgres = await sharedPostgres();
});
afterAll(() => postgres[Symbol.asyncDispose]());

describe.each(["SQLite", "PostgreSQL"])("parley users, while a server runs on %s", (store) => {
  /** A server where sign-up is closed, and the settings of commands for it. */
  async function start(settings: Environment = { PARLEY_SIGNUP: "closed" }) {
    const { url } = await postgres.database();
    const database: Environment = store === "SQLite" ? {} : { DATABASE_URL: url };
    const server = await startServer({ ...settings, ...database });
    const env = { ...database, PARLEY_DATA: server.dataDir };
    const run = async (...args: string[]) => {
      const { code, stdout, stderr } = await runMain(["users", ...args, "--json"], env);
      return { code, stderr, result: code === 0 ? JSON.parse(stdout) : null };
    };
    return { server, env, run };
  }

  test("create makes an account that can sign in and has its agents", async () => {
    const { server, run } = await start();
    await using _ = server;
    const { code, stderr, result } = await run("create", "Ada", "--name", "Ada Lovelace");
    expect(code).toBe(0);
    expect(stderr).toBe("");
    expect(result).toMatchObject({ username: "ada", display_name: "Ada Lovelace" });
    const { username, password, display_name } = result;
    const { status, body } = await post(server.url, "signIn", { username, password });
    expect({ status, body }).toMatchObject({
      status: 200,
      body: { result: { account: { username, display_name } } },
    });
    const { access_token } = (body as { result: { access_token: string } }).result;
    const agents = await post(server.url, "getMyAgents", {}, access_token);
    expect(JSON.stringify(agents.body)).toContain("ada:claude");
  });

  test("reset --second-factor removes the second factor and keeps the password", async () => {
    const { server, run } = await start({});
    await using _ = server;
    const person = await signUp(server.url);
    const { username } = person;
    const reset = () => run("reset", username, "--second-factor");
    expect(await reset()).toMatchObject({ code: 0, result: { username, removed: false } });
    const password = "correct horse battery";
    await addSecondFactor(person, password);
    const { stderr, result } = await reset();
    expect(result).toEqual({ username, removed: true });
    expect(stderr).toBe("");
    expect((await post(server.url, "signIn", { username, password })).status).toBe(200);
    expect(await person.call("getSecondFactor")).toMatchObject({ enabled: false });
  });

  test("reset-link prints a link with which a person sets a new password once", async () => {
    const { server, env, run } = await start({});
    await using _ = server;
    const { username } = await signUp(server.url);
    const { stderr, result } = await run("reset-link", username, "--url", "https://chat.invalid/");
    expect(stderr).toBe("");
    expect(result).toEqual({
      username,
      url: expect.stringMatching(/^https:\/\/chat\.invalid\/reset-password#plr_[\w-]{43}$/),
      expires_at: expect.any(String),
    });
    const token = new URL(result.url).hash.slice(1);
    const input = { token, new_password: "battery horse staple" };
    expect((await post(server.url, "resetPassword", input)).status).toBe(200);
    expect((await post(server.url, "resetPassword", input)).status).toBe(404);
    const password = "battery horse staple";
    expect((await post(server.url, "signIn", { username, password })).status).toBe(200);
    const { stdout } = await runMain(["users", "reset-link", username], { ...env, PORT: "8099" });
    expect(stdout).toMatch(/^http:\/\/127\.0\.0\.1:8099\/reset-password#plr_[\w-]{43}\n$/);
  });

  test("reset-link says what else to do for somebody whose password cannot be reset", async () => {
    const { server, run } = await start({});
    await using _ = server;
    const { username } = await signUp(server.url);
    await run("suspend", username);
    expect(await run("reset-link", username)).toMatchObject({
      code: 1,
      stderr: `${username} is suspended. Run "parley users restore ${username}" first.\n`,
    });
    expect(await run("reset-link", "nobody")).toMatchObject({ code: 1 });
    expect((await run("reset-link", username, "--url", "chat")).stderr).toContain("--url must be");
  });

  test("create refuses names that a sign-up would refuse", async () => {
    const { server, run } = await start();
    await using _ = server;
    await run("create", "ada");
    const refused: [args: string[], message: string][] = [
      [["ada"], 'The username ada is taken. Choose another one, or run "parley users reset ada".'],
      [["a"], "username must be 2 to 32 letters, digits or underscores"],
      [["admin"], "username is reserved"],
      [["bob", "--name", "x".repeat(100)], "display_name"],
    ];
    for (const [args, message] of refused) {
      const { code, stderr } = await run("create", ...args);
      expect({ args, code }).toEqual({ args, code: 1 });
      expect(stderr).toContain(message);
    }
    expect((await run("list")).result.users).toHaveLength(1);
  });

  test("list has all people in order, and finds some by their names", async () => {
    const { server, env, run } = await start();
    await using _ = server;
    expect((await run("list")).result).toEqual({ users: [] });
    await run("create", "grace", "--name", "Grace Hopper");
    await run("create", "ada", "--name", "Ada Lovelace");
    const ada = { username: "ada", display_name: "Ada Lovelace" };
    const grace = { username: "grace", display_name: "Grace Hopper" };
    expect((await run("list")).result).toEqual({ users: [ada, grace] });
    expect((await run("list", "--find", "hopp")).result).toEqual({ users: [grace] });
    const { stdout } = await runMain(["users", "list"], env);
    expect(stdout).toBe("ada    Ada Lovelace\ngrace  Grace Hopper\n");
  });

  test("sessions lists the sessions of a person and ends them", async () => {
    const { server, run } = await start({});
    await using _ = server;
    const alice = await signUp(server.url);
    await using socket = await alice.connect();
    const { result } = await run("sessions", alice.username);
    const { items } = await alice.call("getSessions");
    expect(result.sessions).toEqual(items.map(({ current: _, ...session }) => session));
    const ended = await run("sessions", alice.username, "--end");
    expect(ended.result).toEqual({ username: alice.username, sessions_ended: 1 });
    expect(ended.stderr).toBe("");
    await socket.until(() => socket.closed, "the end of the session");
    expect(socket.closed?.code).toBe(closeCodes.signedOut);
    expect((await run("sessions", alice.username)).result.sessions).toEqual([]);
  });

  test("reset and sessions need a person who exists", async () => {
    const { server, run } = await start();
    await using _ = server;
    await run("create", "ada");
    for (const username of ["nobody", "ada:claude"]) {
      for (const name of ["reset", "sessions"]) {
        const { code, stderr } = await run(name, username);
        expect(code).toBe(1);
        expect(stderr).toContain(`There is no person named ${username}. Run "parley users list"`);
      }
    }
    expect((await run("reset", "ADA")).result).toMatchObject({ username: "ada" });
  });
});
