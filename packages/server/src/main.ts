#!/usr/bin/env -S BUN_CONFIG_MAX_HTTP_REQUESTS=65336 bun
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Server } from "bun";
import { deltas } from "./agents/deltas.ts";
import { dispatcher } from "./agents/dispatcher.ts";
import { keyTester } from "./agents/key-test.ts";
import { type Config, ConfigError, type Database, readConfig } from "./config.ts";
import { migrateStore } from "./migrate.ts";
import { loopLag } from "./observe/lag.ts";
import { type Logger, logger } from "./observe/log.ts";
import { metrics as newMetrics } from "./observe/metrics.ts";
import { securityLog } from "./observe/security-log.ts";
import { type Bound, invoker, type Services } from "./operation.ts";
import { handlers } from "./operations/index.ts";
import { backlog } from "./realtime/backlog.ts";
import type { Bus } from "./realtime/bus.ts";
import { memoryBus } from "./realtime/bus-memory.ts";
import { natsBus } from "./realtime/bus-nats.ts";
import { alone, type Cluster, cluster as newCluster } from "./realtime/cluster.ts";
import { type Healer, healer } from "./realtime/heal.ts";
import { type Hub, hub as newHub } from "./realtime/hub.ts";
import { sockets as newSocketCounts } from "./realtime/sockets.ts";
import { typing } from "./realtime/typing.ts";
import { rotateKeys } from "./rotate.ts";
import { authenticator } from "./security/authenticate.ts";
import { type MasterKeyFile, masterKeyFile } from "./security/master-keys.ts";
import { oidc } from "./security/oidc.ts";
import { hashNow, passwords } from "./security/passwords.ts";
import { sessionUpkeep } from "./security/session-upkeep.ts";
import { signInGuard } from "./security/sign-in-guard.ts";
import { throttle } from "./security/throttle.ts";
import { vault as newVault, type Vault } from "./security/vault.ts";
import { replacePassword } from "./sessions.ts";
import { openPostgresStore } from "./store/postgres/index.ts";
import { openPostgresTarget } from "./store/postgres/target.ts";
import { openSqliteStore } from "./store/sqlite/index.ts";
import { lockFile } from "./store/sqlite/lock.ts";
import { restrictToOwner } from "./store/sqlite/private-file.ts";
import { openSqliteSource } from "./store/sqlite/source.ts";
import type { SharedStore, Store } from "./store/store.ts";
import { httpTransport } from "./transport/http.ts";
import { metricsPage, pages } from "./transport/pages.ts";
import { type Connection, socketTransport } from "./transport/socket.ts";

/** How long calls under way may take to finish once the process is told to stop. */
const STOP_MS = 5000;

/** Ten key tests a minute for each account: enough to correct a key, too few to try keys out. */
const KEY_TESTS = { perSecond: 1 / 6, burst: 10 };

export interface Running {
  /** Where it listens, such as `http://127.0.0.1:8080`. */
  readonly url: string;
  /** Where Prometheus reads, if that is apart. */
  readonly metricsUrl: string | null;
  stop(): Promise<void>;
}

/** The folder everything is kept in, made if it is not there. */
function dataDir(config: Config): string {
  const folder = resolve(config.dataDir);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    return folder;
  } catch {
    throw new ConfigError(
      `PARLEY_DATA must be a folder that can be written, not "${config.dataDir}".`,
    );
  }
}

async function openStore(config: Config): Promise<Store> {
  if (config.database) return openShared(config.database, false);
  return openSqliteStore(join(dataDir(config), "parley.db"));
}

async function openShared(database: Database, keepsEvents: boolean): Promise<SharedStore> {
  try {
    return await openPostgresStore({ ...database, keepsEvents });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new ConfigError(`DATABASE_URL names a database that cannot be used: ${why}.`);
  }
}

/** The path of a secret in the data folder. A copy that others could read, as from a backup, is made private. */
function secretFile(config: Config, name: string): string {
  const file = join(dataDir(config), name);
  restrictToOwner(file);
  return file;
}

const keyFile = (config: Config): MasterKeyFile => masterKeyFile(secretFile(config, "master.key"));

function openVault(config: Config): Vault {
  if (config.masterKeys) return newVault(config.masterKeys);
  const file = keyFile(config);
  return newVault(file.read(), file.read);
}

/** What nodes share, or the one node there is has for itself. */
interface Backends {
  store: Store;
  bus: Bus;
  cluster: Cluster;
  /** Finds what this node has missed of the others. */
  heal(hub: Hub): Pick<Healer, "stop">;
}

async function openBackends(config: Config, node: string, log: Logger): Promise<Backends> {
  const { database, nats } = config;
  if (!database || !nats) {
    const heal = () => ({ stop: () => {} });
    return { store: await openStore(config), bus: memoryBus(), cluster: alone, heal };
  }
  const store = await openShared(database, true);
  const prefix = `parley.${store.installation}`;
  const bus = natsBus({ ...nats, node, prefix, events: store, log });
  const cluster = newCluster(bus.channel, { log });
  return {
    store,
    bus,
    cluster,
    heal: (hub) => healer({ hub, bus, events: store, cluster, log }),
  };
}

/** Puts the service together. The only place that chooses backends. */
export async function start(config: Config): Promise<Running> {
  const log = logger(config.logLevel);
  const node = Bun.randomUUIDv7();
  const { store, bus, cluster, heal } = await openBackends(config, node, log);
  const vault = openVault(config);
  const { limits } = config;
  const socketCounts = newSocketCounts(cluster, limits.sockets_per_user);
  const unsent = backlog(
    limits.backlog_total_bytes,
    () => hub.clients(),
    (bytes) => log.warn({ bytes }, "slow socket closed: backlog_total_bytes exceeded"),
  );
  const publish = (topic: string, data: string) => {
    unsent.sent(data.length * server.subscriberCount(topic));
    server.publish(topic, data);
  };
  const hub = newHub(bus, publish, socketCounts);
  const healing = heal(hub);
  const metrics = newMetrics();
  const security = securityLog(log);
  const everywhere = (name: string) => ({ cluster, name });
  store.onCommit((announcements) => {
    try {
      hub.announce(announcements);
    } catch (error) {
      log.error({ err: error }, "events could not be announced");
    }
  });
  metrics.watch(
    "parley_event_loop_lag_seconds",
    "gauge",
    "Longest hold-up of the event loop since the last scrape.",
    loopLag(),
  );
  metrics.watch("parley_sockets", "gauge", "Open sockets.", hub.size);
  metrics.watch(
    "parley_backlog_bytes",
    "gauge",
    "Bytes sent to sockets that their clients have not read.",
    unsent.total,
  );

  const services: Services = {
    config,
    store,
    hub,
    typing: typing(hub, undefined, cluster),
    passwords: passwords(),
    vault,
    authenticator: authenticator({
      store,
      oidc: config.oidc && oidc(config.oidc, log),
      providers: config.providers,
      limits,
      security,
    }),
    rates: {
      messages: throttle(
        { perSecond: limits.messages_per_second, burst: limits.message_burst },
        everywhere("messages"),
      ),
      operations: throttle(
        { perSecond: limits.operations_per_second, burst: limits.operation_burst },
        everywhere("operations"),
      ),
      searches: throttle(
        { perSecond: limits.searches_per_second, burst: limits.search_burst },
        everywhere("searches"),
      ),
    },
    keyTester: keyTester({ config, vault, log }),
    signInGuard: signInGuard(everywhere),
    signUps: throttle(
      { perSecond: limits.signups_per_hour / 3600, burst: limits.signups_per_hour },
      everywhere("sign-ups"),
    ),
    keyTests: throttle(KEY_TESTS, everywhere("key tests")),
    log,
    security,
    metrics,
  };

  const agents = dispatcher({ node, config, store, vault, deltas: deltas(store, node), log });
  hub.onTurns(agents.receive);
  metrics.watch("parley_turns", "gauge", "Agent turns under way.", agents.running);

  const byName = new Map(handlers.map((bound) => [bound.contract.name, bound]));
  const byEitherName = new Map<string, Bound>([
    ...byName,
    ...handlers.map((bound) => [bound.contract.socket, bound] as const),
  ]);
  const sockets = socketTransport(services, invoker(byEitherName, services), unsent);
  const http = httpTransport({
    services,
    invoke: invoker(byName, services),
    pages: pages({ services, bus }),
    upgrade: (request, origin) =>
      sockets.upgrade(request, origin, (upgraded, data) => server.upgrade(upgraded, { data })),
  });

  const server: Server<Connection> = listen(config, {
    hostname: config.host,
    port: config.port,
    // Bodies are measured where they are read, so that a large one gets a proper answer.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    idleTimeout: 120,
    fetch: (request, self) => http(request, self.requestIP(request)?.address ?? ""),
    websocket: sockets.handlers,
    error: (error) => {
      log.error({ err: error }, "request failed");
      return new Response(null, { status: 500 });
    },
  });

  const watched = config.metrics && listenForMetrics(config.metrics, services);
  const upkeep = sessionUpkeep({ store, hub, log, watchMs: watchMs(config) });
  const begun = agents.start();
  return {
    url: urlOf(config.host, server.port),
    metricsUrl: watched && `${urlOf(watched.hostname ?? "", watched.port)}/metrics`,
    async stop() {
      await watched?.stop(true);
      await begun;
      await agents.stop();
      sockets.stop();
      await Promise.race([server.stop(), Bun.sleep(STOP_MS)]);
      await server.stop(true);
      await upkeep.stop();
      healing.stop();
      cluster.stop();
      await bus.close();
      await store.close();
    },
  };
}

/** SQLite tells for next to nothing whether another process has written. Nodes with NATS tell each other. */
function watchMs({ database, nats }: Config): number | null {
  if (nats) return null;
  return database ? 3000 : 1000;
}

/** Invitation by a code of the installation's own, made once. */
function withInviteCode(config: Config): Config {
  if (config.signUp.kind !== "invite" || config.signUp.codes.length > 0) return config;
  const file = secretFile(config, "invite-code");
  if (!existsSync(file)) writeFileSync(file, crypto.randomUUID(), { mode: 0o600 });
  return { ...config, signUp: { kind: "invite", codes: [readFileSync(file, "utf8").trim()] } };
}

function listen(config: Config, options: Parameters<typeof Bun.serve<Connection>>[0]) {
  try {
    return Bun.serve<Connection>(options);
  } catch {
    throw new ConfigError(
      `HOST and PORT must name an address that is free, not "${config.host}:${config.port}".`,
    );
  }
}

/** A listener that answers nobody but Prometheus, and only about figures. */
function listenForMetrics({ host, port }: { host: string; port: number }, services: Services) {
  const fetch = (request: Request) =>
    new URL(request.url).pathname === "/metrics"
      ? metricsPage(services)
      : new Response(null, { status: 404 });
  try {
    return Bun.serve({ hostname: host, port, fetch });
  } catch {
    throw new ConfigError(
      `PARLEY_METRICS_HOST and PARLEY_METRICS_PORT must name an address that is free, not "${host}:${port}".`,
    );
  }
}

const urlOf = (host: string, port: number | undefined) =>
  `http://${host.includes(":") ? `[${host}]` : host}:${port}`;

const print = (line: string) => process.stdout.write(`${line}\n`);

/** One write: whoever has read that the server listens has read the rest too. */
function greet({ url, metricsUrl }: Running, config: Config): void {
  const invite_code = config.signUp.kind === "invite" ? config.signUp.codes[0] : undefined;
  const account = { username: "alice", password: "correct horse battery", invite_code };
  const lines = [
    `Parley listens on ${url}`,
    metricsUrl && `Metrics are at ${metricsUrl}`,
    `Data is kept in ${config.database ? "PostgreSQL" : resolve(config.dataDir)}`,
    invite_code !== undefined && `Invite code: ${invite_code}`,
    `The reference is at ${url}/docs`,
    config.signUp.kind !== "closed" && `To begin, sign up:\n  ${signUpCommand(url, account)}`,
  ];
  print(lines.filter(Boolean).join("\n"));
}

const signUpCommand = (url: string, account: object) =>
  `curl -s ${url}/api/signUp -H 'content-type: application/json' -d '${JSON.stringify(account)}'`;

function fail(error: unknown): never {
  const message = error instanceof Error ? error.message : String(error);
  process.stderr.write(`${error instanceof ConfigError ? message : `Parley: ${message}`}\n`);
  process.exit(1);
}

/** Two servers on one folder would both believe that everything in it is theirs. */
function claimDataDir(config: Config): void {
  if (!lockFile(join(dataDir(config), "lock"))) {
    throw new ConfigError(`PARLEY_DATA is in use by another server: ${resolve(config.dataDir)}.`);
  }
}

async function serve(): Promise<void> {
  const config = withInviteCode(readConfig());
  if (!config.database) claimDataDir(config);
  const running = await start(config);
  greet(running, config);
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    process.once(signal, () => running.stop().then(() => process.exit(0), fail));
  }
}

/** What commands do is logged on standard error: standard output has their answer. */
const commandLog = ({ logLevel }: Config) => securityLog(logger(logLevel, 2));

/** A file of the installation's own gets a new key first; configured keys are rotated as given. */
async function rotate(): Promise<void> {
  const config = readConfig();
  const store = await openStore(config);
  if (!config.masterKeys) keyFile(config).add();
  const { resealed, kept } = await rotateKeys(store, openVault(config));
  commandLog(config).record("master_key_rotated", { keys_resealed: resealed });
  print(`Sealed ${resealed} keys under the newest master key; ${kept} were so already.`);
  await store.close();
}

/** Copies the data folder's SQLite into the PostgreSQL of DATABASE_URL, beside a server or after it. */
async function migrate(): Promise<void> {
  const { database, dataDir: folder } = readConfig();
  if (!database) throw new ConfigError("DATABASE_URL must name the PostgreSQL to migrate to.");
  const source = openSqliteSource(resolve(folder, "parley.db"));
  const target = await openPostgresTarget(database);
  await migrateStore({ source, target, print });
  await target.close();
  source.close();
}

/** Asks the server that runs with the same settings: a container has no other program to ask with. */
async function ready(): Promise<void> {
  const { host, port } = readConfig();
  const { ok } = await fetch(`${urlOf(host, port)}/ready`);
  if (!ok) throw new Error("not ready");
}

/** For those who have forgotten theirs: a new one, which they are told by whoever runs this. */
async function resetPassword(username: string): Promise<void> {
  const config = readConfig();
  const store = await openStore(config);
  const account = await store.read((tx) => tx.account(username));
  if (account?.kind !== "human") throw new ConfigError(`There is no person named ${username}.`);
  const password = randomBytes(12).toString("base64url");
  const hash = await hashNow(password);
  const sessions_ended = await store.write((tx) => replacePassword(tx, account, hash));
  commandLog(config).record("password_reset", { account: username, sessions_ended });
  print(`The password of ${username} is now ${password}`);
  await store.close();
}

/** Tells clients to fetch everything anew, after a restore that the store cannot notice by itself. */
async function renewHistory(): Promise<void> {
  const store = await openStore(readConfig());
  await store.write((tx) => tx.renewHistory());
  print("Clients fetch their conversations anew when they next connect.");
  await store.close();
}

const USAGE = `Usage: parley [serve]
       parley ready
       parley history renew
       parley keys rotate
       parley password reset <username>
       parley migrate --from sqlite --to postgres`;

async function main(command: string): Promise<void> {
  const [, username] = /^password reset (\S+)$/.exec(command) ?? [];
  if (username !== undefined) await resetPassword(username);
  else if (command === "" || command === "serve") await serve();
  else if (/^(?:help|--help|-h)$/.test(command)) print(USAGE);
  else if (command === "ready") await ready();
  else if (command === "history renew") await renewHistory();
  else if (command === "keys rotate") await rotate();
  else if (command === "migrate --from sqlite --to postgres") await migrate();
  else throw new ConfigError(USAGE);
}

if (import.meta.main) main(process.argv.slice(2).join(" ")).catch(fail);
