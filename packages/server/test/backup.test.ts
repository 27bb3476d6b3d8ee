import { Database } from "bun:sqlite";
import { afterAll, describe, expect, test } from "bun:test";
import {
  chownSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { agentOf, answerTo, type Person, say, search, signUp } from "@parley/testkit/client.ts";
import { linkOf, upload } from "@parley/testkit/files.ts";
import { noRates, runMain, spawnMain, startServer } from "@parley/testkit/server.ts";
import { until } from "@parley/testkit/until.ts";
import manifest from "../package.json" with { type: "json" };
import { appendEntry, endArchive } from "../src/commands/backup/tar.ts";
import { NEWEST_SCHEMA } from "../src/store/sqlite/migrations.ts";

const folder = mkdtempSync(join(tmpdir(), "parley-backup-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let count = 0;
/** A path that does not exist yet. */
const fresh = (name: string) => join(folder, `${++count}-${name}`);
/** A path in a folder of its own. */
function alone(name: string): string {
  const parent = fresh("folder");
  mkdirSync(parent);
  return join(parent, name);
}

const backUp = (dataDir: string, file: string, ...options: string[]) =>
  runMain(["backup", file, "--json", ...options], { PARLEY_DATA: dataDir });
const restore = (dataDir: string, file: string, ...options: string[]) =>
  runMain(["restore", file, ...options], { PARLEY_DATA: dataDir });

const historyOf = (path: string) => {
  using db = new Database(path, { readonly: true });
  return db.query<{ id: string }, []>("SELECT id FROM history").get()?.id;
};

/** The contents of all messages of a conversation, in order, which have no gap. */
async function contentsOf(person: Person, chat_id: string): Promise<string[]> {
  const items = [];
  for (let before: string | undefined; ; ) {
    const page = await person.call("getChatHistory", { chat_id, ...(before && { before }) });
    items.unshift(...page.items);
    before = page.items[0]?.id;
    if (!page.has_more) break;
  }
  expect(items.map(({ seq }) => seq)).toEqual(items.map((_, place) => place + 1));
  return items.map(({ content }) => content);
}

/** Makes a backup of the folder take long enough to be killed in the middle. */
const slowDown = (dataDir: string) =>
  writeFileSync(join(dataDir, "invite-code"), Buffer.alloc(100_000_000));

/** Starts a command and kills it while it works. One that has ended before is started again. */
async function killWhile(
  start: () => ReturnType<typeof spawnMain>,
  isWorking: () => boolean,
): Promise<void> {
  for (let isInTime = false; !isInTime; ) {
    const child = start();
    while (!isWorking() && child.exitCode === null) await Bun.sleep(1);
    child.kill("SIGSTOP");
    isInTime = isWorking();
    child.kill("SIGKILL");
    await child.exited;
  }
}

describe("a backup of a running server", () => {
  test("has everything that was acknowledged before it began, and opens after a restore", async () => {
    await using server = await startServer(noRates);
    const alice = await signUp(server.url);
    await alice.call("setAgentKey", { provider: "claude", api_key: "sandbox-0123456789" });
    const chat = await alice.call("startChat", { usernames: [], kind: "group", title: "Load" });
    const load = sendUntilStopped(alice, chat);
    await load.reached(200);
    const before = load.acknowledged();
    const file = fresh("backup.tar");
    const { code, stdout, stderr } = await backUp(server.dataDir, file);
    await load.reached(before + 50);
    await load.stop();
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(JSON.parse(stdout)).toMatchObject({
      file,
      bytes: statSync(file).size,
      version: manifest.version,
      schema: NEWEST_SCHEMA,
      files: [{ name: "parley.db", sha256: expect.stringMatching(/^[0-9a-f]{64}$/) }],
    });
    expect(statSync(file).mode & 0o777).toBe(0o600);

    const dataDir = fresh("data");
    expect(await restore(dataDir, file)).toMatchObject({ code: 0, stderr: "" });
    cpSync(join(server.dataDir, "master.key"), join(dataDir, "master.key"));
    await using restored = await startServer({ PARLEY_DATA: dataDir });
    const again = alice.at(restored.url);
    const contents = await contentsOf(again, chat.id);
    expect(contents.length).toBeGreaterThanOrEqual(before);
    expect(contents).toEqual(contents.map((_, place) => `message ${place}`));
    expect(historyOf(join(dataDir, "parley.db"))).not.toBe(
      historyOf(join(server.dataDir, "parley.db")),
    );
    const talk = await again.call("startChat", { usernames: [agentOf(again)] });
    await using socket = await again.connect();
    const answer = await answerTo(socket, await say(again, talk, "Hello!"));
    expect(answer.content).toContain("sandbox");
    const { items } = await search(again, { query: "sandbox" });
    expect(items).toHaveLength(1);
  });

  test("that is killed leaves no file of that name, and the next one succeeds", async () => {
    await using server = await startServer(noRates);
    const alice = await signUp(server.url);
    const chat = await alice.call("startChat", { usernames: [], kind: "group" });
    const load = sendUntilStopped(alice, chat);
    await load.reached(300);
    slowDown(server.dataDir);
    const file = alone("backup.tar");
    const work = `${file}.partial`;
    for (const made of ["parley.db", basename(file)]) {
      const start = () => {
        rmSync(file, { force: true });
        return spawnMain({ PARLEY_DATA: server.dataDir }, ["backup", file]);
      };
      await killWhile(start, () => existsSync(join(work, made)) && !existsSync(file));
      expect(existsSync(file)).toBe(false);
      await load.reached(load.acknowledged() + 50);
    }
    expect(await backUp(server.dataDir, file)).toMatchObject({ code: 0 });
    await load.stop();
    expect(readdirSync(join(file, ".."))).toEqual(["backup.tar"]);
    expect(await restore(fresh("data"), file, "--check")).toMatchObject({ code: 0 });
    expect(await contentsOf(alice, chat.id)).toHaveLength(load.acknowledged());
  });
});

describe("files", () => {
  test("are in a backup that is made while people send and delete them, and load after a restore", async () => {
    await using server = await startServer(noRates);
    const alice = await signUp(server.url);
    const chat = await alice.call("startChat", { usernames: [], kind: "group" });
    const sendFile = async (text: string) => {
      const { id } = await upload(alice, chat.id, `${text}.txt`, text);
      const message = await alice.call("sendMessage", {
        chat_id: chat.id,
        content: text,
        file_ids: [id],
      });
      return { id, text, message_id: message.id };
    };
    const kept = [await sendFile("one"), await sendFile("two")];
    const gone = await sendFile("gone");
    await alice.call("deleteMessages", { chat_id: chat.id, message_ids: [gone.message_id] });
    const file = fresh("backup.tar");
    const running = backUp(server.dataDir, file);
    for (let sent = 0; sent < 20; sent++) {
      const { message_id } = await sendFile(`meanwhile ${sent}`);
      await alice.call("deleteMessages", { chat_id: chat.id, message_ids: [message_id] });
    }
    const { code, stdout, stderr } = await running;
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(JSON.parse(stdout).stored_files.objects).toBeGreaterThanOrEqual(kept.length);

    const dataDir = fresh("data");
    expect(await restore(dataDir, file)).toMatchObject({ code: 0, stderr: "" });
    await using restored = await startServer({ PARLEY_DATA: dataDir });
    const again = alice.at(restored.url);
    for (const { id, text } of kept) {
      expect(await (await fetch((await linkOf(again, id)).url)).text()).toBe(text);
    }
    expect(await again.call("getFileLinks", { file_ids: [gone.id] })).toEqual({ items: [] });
  });

  test("that are damaged are found, and files in the way are not overwritten", async () => {
    const file = await backupWithFile();
    const bytes = readFileSync(file);
    const damaged = fresh("damaged.tar");
    bytes.write("ZEPPELIN", bytes.lastIndexOf("zeppelin bytes"));
    writeFileSync(damaged, bytes);
    const dataDir = fresh("data");
    const refused = await restore(dataDir, damaged);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain("has a wrong checksum");
    expect(readdirSync(join(dataDir, "files"))).toEqual([]);
    const storage = fresh("storage");
    mkdirSync(storage);
    writeFileSync(join(storage, "other"), "x");
    const env = { PARLEY_DATA: dataDir, PARLEY_FILES: `disk:${storage}` };
    const occupied = await runMain(["restore", file], env);
    expect(occupied.stderr).toContain(`${storage} has files already`);
    rmSync(join(storage, "other"));
    expect(await runMain(["restore", file], env)).toMatchObject({ code: 0, stderr: "" });
    expect(readdirSync(storage)).toContain("incoming");
  });

  /** A backup with one file, "zeppelin bytes". */
  async function backupWithFile(): Promise<string> {
    await using server = await startServer(noRates);
    const alice = await signUp(server.url);
    const chat = await alice.call("startChat", { usernames: [], kind: "group" });
    await upload(alice, chat.id, "a.txt", "zeppelin bytes");
    const file = fresh("backup.tar");
    expect(await backUp(server.dataDir, file)).toMatchObject({ code: 0, stderr: "" });
    return file;
  }

  /** The contents of the objects in a storage folder. */
  const objectsIn = (storage: string) =>
    readdirSync(storage, { recursive: true, encoding: "utf8" })
      .map((name) => join(storage, name))
      .filter((path) => statSync(path).isFile())
      .map((path) => readFileSync(path, "utf8"));

  test("are restored to the root of a disk, which stays in its place", async () => {
    const file = await backupWithFile();
    const storage = alone("disk");
    mkdirSync(join(storage, "lost+found"), { recursive: true });
    const { ino } = statSync(storage);
    const env = { PARLEY_DATA: fresh("data"), PARLEY_FILES: `disk:${storage}` };
    expect(await runMain(["restore", file], env)).toMatchObject({ code: 0, stderr: "" });
    expect(statSync(storage).ino).toBe(ino);
    expect(readdirSync(join(storage, ".."))).toEqual(["disk"]);
    expect(objectsIn(storage)).toEqual(["zeppelin bytes"]);
    expect(readdirSync(storage)).toEqual(expect.arrayContaining(["incoming", "lost+found"]));
    expect(readdirSync(storage)).not.toContain("restoring");
  });

  test("that an interrupted restore has placed are restored again", async () => {
    const file = await backupWithFile();
    const dataDir = fresh("data");
    expect(await restore(dataDir, file)).toMatchObject({ code: 0, stderr: "" });
    // What a process leaves that is killed before the database gets its name.
    renameSync(join(dataDir, "parley.db"), join(dataDir, "parley.db.restoring"));
    const storage = join(dataDir, "files");
    mkdirSync(join(storage, "restoring"));
    expect(await restore(dataDir, file)).toMatchObject({ code: 0, stderr: "" });
    expect(objectsIn(storage)).toEqual(["zeppelin bytes"]);
    expect(readdirSync(dataDir)).toContain("parley.db");
  });

  test("of another installation are not taken for those of an interrupted restore", async () => {
    const [file, other] = [await backupWithFile(), await backupWithFile()];
    const storage = fresh("storage");
    const env = { PARLEY_DATA: fresh("data"), PARLEY_FILES: `disk:${storage}` };
    expect(await runMain(["restore", other], env)).toMatchObject({ code: 0 });
    mkdirSync(join(storage, "restoring"));
    const again = await runMain(["restore", file], { ...env, PARLEY_DATA: fresh("data") });
    expect(again.stderr).toContain("has files already");
  });

  test("that cannot be written are not the fault of the backup", async () => {
    const file = await backupWithFile();
    const occupied = fresh("occupied");
    writeFileSync(occupied, "");
    const env = { PARLEY_DATA: fresh("data"), PARLEY_FILES: `disk:${occupied}/files` };
    const { code, stderr } = await runMain(["restore", file], env);
    expect(code).toBe(1);
    expect(stderr).toContain(`${occupied}/files cannot be written`);
    expect(stderr).not.toContain("Use another backup");
  });
});

test("a backup does not follow a link in place of its work folder", async () => {
  await using server = await startServer(noRates);
  const other = fresh("other");
  mkdirSync(other);
  writeFileSync(join(other, "parley.db"), "precious");
  const file = alone("backup.tar");
  symlinkSync(other, `${file}.partial`);
  const { code, stderr } = await backUp(server.dataDir, file);
  expect(code).toBe(1);
  expect(stderr).toContain(`${file}.partial is a link, or belongs to another user.`);
  expect(readdirSync(other)).toEqual(["parley.db"]);
  expect(existsSync(file)).toBe(false);
});

/** Sends numbered messages, one after another, over a socket. */
function sendUntilStopped(person: Person, chat: { id: string }) {
  let isStopped = false;
  let acknowledged = 0;
  const sending = (async () => {
    await using socket = await person.connect();
    while (!isStopped) {
      await socket.call("sendMessage", { chat_id: chat.id, content: `message ${acknowledged}` });
      acknowledged++;
    }
  })();
  return {
    acknowledged: () => acknowledged,
    reached: (count: number) => until(() => acknowledged >= count, `${count} acknowledgements`),
    stop: () => {
      isStopped = true;
      return sending;
    },
  };
}

/** A data folder of a server that has stopped, and a backup of it. */
async function stopped(...options: string[]) {
  await using server = await startServer({ PARLEY_SIGNUP: "invite" });
  await server.stop();
  const dataDir = fresh("data");
  cpSync(server.dataDir, dataDir, { recursive: true });
  const file = fresh("backup.tar");
  const { stdout } = await backUp(dataDir, file, ...options);
  return { dataDir, file, names: namesIn(stdout) };
}

const namesIn = (stdout: string): string[] =>
  JSON.parse(stdout).files.map(({ name }: { name: string }) => name);

describe("a backup contains", () => {
  test("the master key only if it is asked for", async () => {
    const { dataDir, names } = await stopped();
    expect(names).toEqual(["parley.db", "invite-code"]);
    const file = fresh("backup.tar");
    const { stdout } = await backUp(dataDir, file, "--with-master-key");
    expect(namesIn(stdout)).toEqual(["parley.db", "master.key", "invite-code"]);
    const restored = fresh("data");
    await restore(restored, file);
    for (const name of ["master.key", "invite-code"]) {
      expect(readFileSync(join(restored, name))).toEqual(readFileSync(join(dataDir, name)));
      expect(statSync(join(restored, name)).mode & 0o777).toBe(0o600);
    }
  });

  test("only files that tar can read", async () => {
    const { file } = await stopped();
    const out = fresh("out");
    mkdirSync(out);
    expect(Bun.spawnSync(["tar", "xf", file, "-C", out]).exitCode).toBe(0);
    expect(readdirSync(out).toSorted()).toEqual(["invite-code", "manifest.json", "parley.db"]);
    const { files } = JSON.parse(readFileSync(join(out, "manifest.json"), "utf8"));
    for (const { name, sha256 } of files) {
      const bytes = readFileSync(join(out, name));
      expect(new Bun.CryptoHasher("sha256").update(bytes).digest("hex")).toBe(sha256);
    }
  });
});

describe("a backup is refused", () => {
  const refused = async (dataDir: string, file: string, ...options: string[]) => {
    const { code, stderr } = await backUp(dataDir, file, ...options);
    expect(code).toBe(1);
    return stderr;
  };

  test("over an existing file, into a missing folder, and without a database", async () => {
    const { dataDir, file } = await stopped();
    expect(await refused(dataDir, file)).toContain("exists. Choose another name");
    expect(await refused(dataDir, join(fresh("missing"), "a.tar"))).toContain("There is no folder");
    expect(await refused(fresh("data"), fresh("a.tar"))).toContain("There is no database");
  });

  test("of a damaged database", async () => {
    const { dataDir } = await stopped();
    const path = join(dataDir, "parley.db");
    const bytes = readFileSync(path);
    bytes.fill(0xff, 4096 * 2, 4096 * 12);
    writeFileSync(path, bytes);
    const file = alone("a.tar");
    expect(await refused(dataDir, file)).toContain("malformed");
    expect(readdirSync(join(file, ".."))).toEqual([]);
  });

  test("with a master key that is not in the folder", async () => {
    const { dataDir } = await stopped();
    rmSync(join(dataDir, "master.key"));
    expect(await refused(dataDir, fresh("a.tar"), "--with-master-key")).toContain(
      "PARLEY_MASTER_KEY",
    );
  });

  test("with PostgreSQL, and says which tools to use", async () => {
    const env = { DATABASE_URL: "postgres://parley:secret@127.0.0.1:1/parley" };
    const dump = await runMain(["backup", "a.tar"], env);
    expect(dump.code).toBe(1);
    expect(dump.stderr).toContain('pg_dump --format=custom --file=parley.dump "$DATABASE_URL"');
    const load = await runMain(["restore", "a.tar"], env);
    expect(load.code).toBe(1);
    expect(load.stderr).toContain("pg_restore --clean --if-exists");
    expect(dump.stderr + load.stderr).not.toContain("secret");
  });
});

describe("a restore is refused", () => {
  const refused = async (dataDir: string, file: string) => {
    const { code, stdout, stderr } = await restore(dataDir, file);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    return stderr;
  };

  test("into the folder of a running server", async () => {
    const { file } = await stopped();
    await using server = await startServer();
    expect(await refused(server.dataDir, file)).toContain("is in use by another server");
    expect((await fetch(`${server.url}/ready`)).status).toBe(200);
  });

  test("into a folder with other files, which stay as they are", async () => {
    const { dataDir, file } = await stopped();
    const before = readFileSync(join(dataDir, "parley.db"));
    const why = await refused(dataDir, file);
    expect(why).toContain("is not empty");
    expect(why).toContain("Move these files away");
    expect(readFileSync(join(dataDir, "parley.db"))).toEqual(before);
    const other = fresh("data");
    mkdirSync(other);
    writeFileSync(join(other, "letters.txt"), "");
    expect(await refused(other, file)).toContain("letters.txt");
  });

  test("over a master key that is in the folder already", async () => {
    const { file } = await stopped("--with-master-key");
    const dataDir = fresh("data");
    mkdirSync(dataDir);
    writeFileSync(join(dataDir, "master.key"), "other");
    expect(await refused(dataDir, file)).toContain("master.key");
    expect(readFileSync(join(dataDir, "master.key"), "utf8")).toBe("other");
  });

  test("over another invite code than that of the backup, but not over the same one", async () => {
    const { dataDir: source, file } = await stopped();
    const dataDir = fresh("data");
    mkdirSync(dataDir);
    writeFileSync(join(dataDir, "invite-code"), "other");
    expect(await refused(dataDir, file)).toContain("another invite-code than the backup");
    expect(readFileSync(join(dataDir, "invite-code"), "utf8")).toBe("other");
    cpSync(join(source, "invite-code"), join(dataDir, "invite-code"));
    expect(await restore(dataDir, file)).toMatchObject({ code: 0, stderr: "" });
    expect(readFileSync(join(dataDir, "invite-code"))).toEqual(
      readFileSync(join(source, "invite-code")),
    );
  });

  test("of a damaged or incomplete backup, and leaves no database", async () => {
    const { file } = await stopped();
    const original = readFileSync(file);
    const places = [0, 200, 600, 5000, 60_000, original.length - 1600];
    const dataDir = fresh("data");
    mkdirSync(dataDir);
    for (const place of places) {
      const bytes = Buffer.from(original);
      bytes[place] = (bytes[place] ?? 0) ^ 0xff;
      const damaged = fresh("damaged.tar");
      writeFileSync(damaged, bytes);
      expect([place, await refused(dataDir, damaged)]).toEqual([
        place,
        expect.stringContaining("cannot be restored"),
      ]);
      expect(await restore(dataDir, damaged, "--check")).toMatchObject({ code: 1 });
      expect(readdirSync(dataDir).filter((name) => /parley/.test(name))).toEqual([]);
    }
    for (const length of [0, 700, original.length - 2000]) {
      const short = fresh("short.tar");
      cpSync(file, short);
      truncateSync(short, length);
      expect(await refused(dataDir, short)).toContain("cannot be restored");
    }
    expect(await restore(dataDir, file)).toMatchObject({ code: 0 });
  });

  test("of anything that is not a backup", async () => {
    const text = fresh("letters.txt");
    writeFileSync(text, "Dear Ada,\n".repeat(1000));
    expect(await refused(fresh("data"), text)).toContain("damaged or incomplete");
    expect(await refused(fresh("data"), fresh("missing.tar"))).toContain("There is no file");
  });

  test("of a newer schema or format, and of files with other names", async () => {
    const file = { name: "parley.db", bytes: 3, sha256: "0".repeat(64) };
    const made = {
      version: "9.0.0",
      created_at: new Date().toISOString(),
      accounts: 0,
      messages: 0,
    };
    const forged: [manifest: object, message: string][] = [
      [{ ...made, format: 1, schema: 10_000, files: [file] }, "newer version of Parley (9.0.0)"],
      [{ ...made, format: 3, schema: 1, files: [file] }, "newer version of Parley"],
      [{ ...made, format: 1, schema: 1, files: [{ ...file, name: "../evil" }] }, "manifest"],
      [{ ...made, format: 1, schema: 1, files: [file, file] }, "does not have the files"],
      [{ ...made, format: 1, schema: 1, files: [file] }, "wrong checksum"],
    ];
    for (const [manifest, message] of forged) {
      expect(await refused(fresh("data"), await archiveOf(manifest))).toContain(message);
    }
  });
});

/** An archive with this manifest and three bytes as the database. */
async function archiveOf(manifest: object): Promise<string> {
  const path = fresh("forged.tar");
  const text = Buffer.from(JSON.stringify(manifest));
  await using archive = await open(path, "w");
  await appendEntry(archive, { name: "manifest.json", bytes: text.length }, [text]);
  await appendEntry(archive, { name: "parley.db", bytes: 3 }, [Buffer.from("abc")]);
  await endArchive(archive);
  return path;
}

test("a restore that is killed leaves no database, and the next one succeeds", async () => {
  const { dataDir: source } = await stopped();
  slowDown(source);
  const file = fresh("backup.tar");
  await backUp(source, file);
  const dataDir = fresh("data");
  const start = () => {
    rmSync(dataDir, { recursive: true, force: true });
    return spawnMain({ PARLEY_DATA: dataDir }, ["restore", file]);
  };
  await killWhile(start, () => existsSync(join(dataDir, "parley.db.restoring")));
  expect(existsSync(join(dataDir, "parley.db"))).toBe(false);
  expect(await restore(dataDir, file)).toMatchObject({ code: 0 });
  expect(readdirSync(dataDir).filter((name) => name.includes("restoring"))).toEqual([]);
});

test("a restore does not follow a link in place of its draft", async () => {
  const { file } = await stopped();
  const dataDir = fresh("data");
  mkdirSync(dataDir);
  const other = fresh("other");
  writeFileSync(other, "precious");
  symlinkSync(other, join(dataDir, "parley.db.restoring"));
  expect(await restore(dataDir, file)).toMatchObject({ code: 0 });
  expect(readFileSync(other, "utf8")).toBe("precious");
  expect(lstatSync(join(dataDir, "parley.db")).isFile()).toBe(true);
});

test.if(process.getuid?.() === 0)(
  "a restore by root gives the owner of the folder no file outside of it",
  async () => {
    const { file } = await stopped();
    const dataDir = fresh("data");
    mkdirSync(dataDir);
    const other = fresh("other");
    writeFileSync(other, "precious");
    symlinkSync(other, join(dataDir, "notes.restoring"));
    chownSync(dataDir, 65534, 65534);
    expect(await restore(dataDir, file)).toMatchObject({ code: 0 });
    expect(statSync(join(dataDir, "parley.db")).uid).toBe(65534);
    expect(statSync(other).uid).toBe(0);
  },
);

test("parley restore --check verifies a backup and writes nothing", async () => {
  const { file } = await stopped();
  const dataDir = fresh("data");
  const { code, stdout } = await restore(dataDir, file, "--check", "--json");
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ restored: false, schema: NEWEST_SCHEMA });
  expect(existsSync(dataDir)).toBe(false);
});
