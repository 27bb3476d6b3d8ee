import { createContextFiles } from "./agents/context-files/index.ts";
import { createDeltas } from "./agents/deltas.ts";
import { createDispatcher } from "./agents/dispatcher.ts";
import { createExternalTurns } from "./agents/external/index.ts";
import { createKeyTester, createModelLists } from "./agents/keys.ts";
import { createElicitations } from "./agents/tools/elicitation.ts";
import { loadClient } from "./agents/tools/load-client.ts";
import { createToolRequests } from "./agents/tools/offered.ts";
import { createToolServers } from "./agents/tools/servers.ts";
import { createTurnLoads } from "./agents/turn-loads.ts";
import type { Bound } from "./calls/bind.ts";
import { chargingFanOut } from "./calls/fan-out.ts";
import { createInvoke } from "./calls/invoke.ts";
import type { Needs } from "./calls/needs.ts";
import { createThrottles } from "./calls/throttles.ts";
import type { Cluster } from "./changes/cluster.ts";
import { type Changes, openChangeStream } from "./changes/stream.ts";
import { openBackends, openBlobs } from "./compose/backends.ts";
import { openVault, refuseOtherMasterKey } from "./compose/master-key.ts";
import { type Config, ConfigError, urlOf } from "./config/config.ts";
import type { Limits } from "./config/limits.ts";
import { createIncomingHooks } from "./domain/incoming-hooks.ts";
import { createOidcAccounts } from "./domain/oidc-accounts.ts";
import { storedPresence } from "./domain/presence.ts";
import { createExports } from "./files/exports/exports.ts";
import { maintainFiles, noFileMaintenance } from "./files/maintenance.ts";
import { refuseUnmounted } from "./files/mount.ts";
import { createFiles } from "./files/service.ts";
import { watchLoopLag } from "./observe/lag.ts";
import { createLogger, type Logger } from "./observe/log.ts";
import { createMetrics, type Metrics } from "./observe/metrics.ts";
import { handlers } from "./operations/index.ts";
import { startWebhooks } from "./outbound/webhooks.ts";
import { type Backlog, createBacklog } from "./realtime/backlog.ts";
import { createHub, type Hub } from "./realtime/hub.ts";
import { createPresence } from "./realtime/presence.ts";
import { countSockets } from "./realtime/sockets.ts";
import { createAuditLog } from "./security/audit-log.ts";
import { createAuthenticator } from "./security/authenticate.ts";
import { createGuardedFetch } from "./security/guarded-fetch.ts";
import { createPasswords } from "./security/passwords.ts";
import { createSignInThrottle } from "./security/sign-in-throttle.ts";
import { createThrottle } from "./security/throttle.ts";
import type { Vault } from "./security/vault.ts";
import type { BackgroundWork } from "./store/background-work.ts";
import { yieldingStore } from "./store/event-loop.ts";
import type { WriteTx } from "./store/store.ts";
import { createHttp, pathOf } from "./transport/http.ts";
import { createMcp } from "./transport/mcp/index.ts";
import { createRoutes, metricsResponse, type RouteOptions } from "./transport/routes.ts";
import type { Services as TransportServices } from "./transport/services.ts";
import { type Connection, createSockets } from "./transport/socket.ts";
import { createUnsentAnswers, type UnsentAnswers } from "./transport/unsent-answers.ts";
import { startErasures } from "./upkeep/erasures.ts";
import { startUpkeep } from "./upkeep/expiry.ts";
import { startRetention } from "./upkeep/retention.ts";

/** How long `stop()` waits for calls in progress before it closes their connections. */
const STOP_MS = 5000;

/**
 * When to load the client of tool servers, unless it is needed earlier. Loading it holds up requests
 * for some 50 ms: neither the first ones after a start nor a turn of an agent should wait for that.
 */
const LOAD_CLIENT_MS = 1000;

export type Running = Awaited<ReturnType<typeof compose>>;

/**
 * Sign-in with the configured issuer: by its tokens, and in the web client. It is imported only when
 * configured: loading it would delay startup.
 */
async function openIssuer({ oidc }: Config, vault: Vault, log: Logger) {
  if (!oidc) return { oidcTokens: null, oidcSignIn: null };
  const [{ createIssuer }, { createOidcTokens }, { createOidcSignIn }] = await Promise.all([
    import("./security/issuer.ts"),
    import("./security/oidc.ts"),
    import("./security/oidc-sign-in.ts"),
  ]);
  const issuer = createIssuer(oidc.issuer, log);
  const { audience, client } = oidc;
  return {
    oidcTokens: audience === null ? null : createOidcTokens({ ...oidc, audience }, issuer),
    oidcSignIn: client && createOidcSignIn({ settings: { ...oidc, client }, issuer, vault, log }),
  };
}

/** Builds the service and starts listening. */
export async function compose(config: Config) {
  const log = createLogger(config.logLevel);
  const node = Bun.randomUUIDv7();
  const backends = await openBackends(config, node, log);
  const { store, bus, cluster } = backends;
  const changes = await openChangeStream({ ...backends, node, log, ...readLog(config) });
  const unsent = createBacklog(
    config.limits,
    function* () {
      yield* transports.sockets.connections;
      yield* answers.readers();
    },
    (limit, bytes) => log.warn({ bytes }, `slow socket closed: ${limit} exceeded`),
  );
  const answers = createUnsentAnswers(unsent.sent);
  const publish = (topic: string, data: string) => {
    unsent.sent(Buffer.byteLength(data), server.subscriberCount(topic));
    server.publish(topic, data);
  };
  const hub = createHub(bus, publish, countSockets(cluster, config.limits.sockets_per_user));
  changes.listen(hub.receive);
  const presence = createPresence({
    hub,
    cluster,
    store: storedPresence(store),
    failed: (error) => log.error({ err: error }, "presence failed"),
  });
  changes.listen(presence.receive);
  const parts = { config, node, store, hub, presence, cluster, changes, log };
  const services = await buildServices(parts);
  const { metrics, webhooks, erasures } = services;
  const maintenance = startFileMaintenance(config, services, node);
  changes.listen(maintenance.receive);
  const background = [store.background, maintenance.background];
  watchBackgroundWork(background, log, metrics);
  watchGauges(metrics, hub, unsent);
  const agents = buildAgents(services, changes, cluster, node);
  const transports = buildTransports(services, changes, {
    unsent,
    answers,
    ready: () => Promise.all([store.ready(), bus.ready()]),
    failing: () => background.flatMap((work) => work.failing()),
    upgrade: (request, data, protocol) =>
      server.upgrade(request, {
        data,
        ...(protocol && { headers: { "sec-websocket-protocol": protocol } }),
      }),
  });

  const server = serve(config, transports, log);
  const metricsServer = config.metrics && listenForMetrics(config.metrics, services);
  const upkeep = startUpkeep({ store, auditDays: config.auditDays, log });
  const deletion = startRetention({ store, node, days: config.retentionDays, log, metrics });
  cluster.start();
  agents.start();
  return {
    /** The base URL of the service, such as `http://127.0.0.1:8080`. */
    url: urlOf(config.host, server.port),
    /** The URL of the separate metrics listener; null when metrics share the main one. */
    metricsUrl:
      metricsServer && `${urlOf(metricsServer.hostname ?? "", metricsServer.port)}/metrics`,
    async stop(): Promise<void> {
      await metricsServer?.stop(true);
      await agents.stop();
      transports.mcp.stop();
      transports.sockets.stop();
      await Promise.race([server.stop(), Bun.sleep(STOP_MS)]);
      await server.stop(true);
      for (const each of [upkeep, erasures, deletion, maintenance, webhooks, presence, changes]) {
        await each.stop();
      }
      cluster.stop();
      await bus.close();
      await store.close();
    },
  };
}

/** All agents of this node: those that models answer for, and those that programs answer for. */
function buildAgents(services: Services, changes: Changes, cluster: Cluster, node: string) {
  const { config, store, vault, files, toolServers, externalTurns, log, metrics } = services;
  const asking = createElicitations(store);
  const agents = createDispatcher({
    node,
    config,
    store: yieldingStore(store),
    vault,
    deltas: createDeltas(store, node),
    contextFiles: createContextFiles({ store, blobs: files?.blobs ?? null, log }),
    toolServers,
    elicit: asking.ask,
    loads: createTurnLoads(cluster),
    log,
  });
  changes.listen((change) => agents.receive(change));
  changes.listen((change) => externalTurns.receive(change));
  changes.listen(asking.receive);
  metrics.watch("parley_turns", "gauge", "Agent turns in progress.", () => agents.running());
  let loadingClient: NodeJS.Timeout | undefined;
  return {
    start() {
      agents.start();
      loadingClient = setTimeout(
        () => loadClient().catch((error) => log.error({ err: error }, "tool client not loaded")),
        LOAD_CLIENT_MS,
      );
      externalTurns.start();
    },
    async stop() {
      clearTimeout(loadingClient);
      await agents.stop();
      await externalTurns.stop();
      await toolServers.close();
    },
  };
}

/** What answers clients. */
type Transports = ReturnType<typeof buildTransports>;

interface TransportOptions extends Pick<RouteOptions, "ready" | "failing"> {
  unsent: Backlog;
  answers: UnsentAnswers;
  upgrade(request: Request, data: Connection, protocol?: string): boolean;
}

function buildTransports(
  services: Services,
  changes: Changes,
  { unsent, answers, ready, failing, upgrade }: TransportOptions,
) {
  const all = handlers(chargingFanOut(services));
  const httpNames = new Map<string, Bound>(all.map((bound) => [bound.contract.name, bound]));
  const socketNames = all.map((bound) => [bound.contract.socket, bound] as const);
  // A socket accepts both names of an operation.
  const allNames = new Map([...httpNames, ...socketNames]);
  const sockets = createSockets(services, createInvoke(allNames, services), unsent);
  const invoke = createInvoke(httpNames, services);
  const mcp = createMcp({ services, invoke, changes });
  const http = createHttp({
    services,
    invoke,
    mcp,
    routes: createRoutes({ services, ready, failing }),
    upgrade: (request, origin) => sockets.upgrade(request, origin, upgrade),
    unsent: answers,
  });
  return { sockets, mcp, http };
}

const serve = (config: Config, { http, sockets }: Transports, log: Logger) =>
  listen("HOST and PORT", config, (address) =>
    Bun.serve<Connection>({
      ...address,
      // `transport/body.ts` enforces the limit, so that a body that is too large gets a JSON failure.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      idleTimeout: 120,
      fetch: (request, self) => http(request, self.requestIP(request)?.address ?? ""),
      websocket: sockets.handlers,
      error: (error) => {
        log.error({ err: error }, "request failed");
        return new Response(null, { status: 500 });
      },
    }),
  );

/** Everything that is built once, at startup. */
type Services = Needs & TransportServices;

interface ServiceParts extends Pick<Services, "config" | "store" | "hub" | "presence" | "log"> {
  node: string;
  cluster: Cluster;
  changes: Changes<WriteTx>;
}

async function buildServices(parts: ServiceParts): Promise<Services> {
  const { config, node, store, hub, presence, cluster, changes, log } = parts;
  const { limits, providers, operators } = config;
  await refuseOtherMasterKey(config, store, log);
  const vault = openVault(config);
  const audit = createAuditLog(log, store);
  const { oidcTokens, oidcSignIn } = await openIssuer(config, vault, log);
  const oidcAccounts = createOidcAccounts({ audit, providers, operators });
  const metrics = createMetrics();
  if (config.files) await refuseUnmounted(config.files, store);
  const blobs = config.files && (await openBlobs(config.files, config.dataDir));
  const { pixels, hooks, ...limited } = throttles(limits, cluster);
  const { taken } = limited.rates.costs;
  metrics.watch("parley_call_cost_total", "counter", "What calls were charged.", taken);
  const fetch = createGuardedFetch({ allowPrivate: config.allowPrivateAddresses });
  const servers = createToolServers({
    store: yieldingStore(store),
    vault,
    fetch,
    offered: config.toolServers,
    operatorFetch: createGuardedFetch({ allowPrivate: true }),
    log,
    metrics,
  });
  return {
    config,
    store,
    hub,
    presence,
    changes,
    passwords: createPasswords(),
    vault,
    webhooks: startWebhooks({ store, changes, vault, fetch, audit, operators, log, metrics }),
    authenticator: createAuthenticator({
      ...{ store, oidcTokens, oidcAccounts, limits, audit },
      serviceKeyHash: config.serviceKeyHash,
    }),
    oidcSignIn,
    oidcAccounts,
    exports: createExports({ store, blobs, vault, log }),
    files: blobs && createFiles({ store, blobs, vault, limits, metrics, pixels }),
    erasures: startErasures({ store, node, log }),
    incomingHooks: createIncomingHooks({ store, config, costs: limited.rates.costs, ...hooks }),
    ...limited,
    externalTurns: createExternalTurns({ store, changes, connected: hub, log }),
    keyTester: createKeyTester({ config, vault, log }),
    toolServers: servers,
    toolRequests: createToolRequests(store, servers),
    modelLists: createModelLists({ config, vault, log }),
    log,
    audit,
    metrics,
  };
}

/** The maintenance of files; a server that takes no files has none. */
function startFileMaintenance(config: Config, services: Services, node: string) {
  const { store, files, log, metrics } = services;
  if (!files) {
    if (config.nats) log.warn("files are off: several nodes need PARLEY_FILES");
    return noFileMaintenance;
  }
  const { blobs } = files;
  return maintainFiles({ store, blobs, node, isShared: config.database !== null, log, metrics });
}

function watchGauges(metrics: Metrics, hub: Hub, unsent: Backlog): void {
  const lag = "Longest delay of the event loop since the last scrape.";
  const unread = "Bytes sent to clients that they have not read.";
  metrics.watch("parley_event_loop_lag_seconds", "gauge", lag, watchLoopLag());
  metrics.watch("parley_sockets", "gauge", "Open sockets.", hub.size);
  metrics.watch("parley_backlog_bytes", "gauge", unread, unsent.total);
}

/** Logs when background work begins to fail and recovers, and counts the failures. */
function watchBackgroundWork(works: readonly BackgroundWork[], log: Logger, metrics: Metrics) {
  for (const work of works) {
    work.onChange((kind, error) => {
      const name = kind === "writes" ? "store writes" : kind.replaceAll("_", " ");
      if (error === null) log.info(`${name} recovered`);
      else log.error({ err: error }, `${name} failed`);
    });
  }
  const help = "Failures of the background work of the store and the file storage by kind.";
  metrics.watch("parley_store_background_failures_total", "counter", help, () =>
    works.flatMap((work) =>
      [...work.failures()].map(([kind, value]) => ({ labels: { kind }, value })),
    ),
  );
}

/** Rates that hold across all nodes. */
function throttles(limits: Limits, cluster: Cluster) {
  const shared = (name: string) => ({ cluster, name });
  const rate = (name: string, perSecond: number, burst: number) =>
    createThrottle({ perSecond, burst }, shared(name));
  return {
    rates: {
      messages: rate("messages", limits.messages_per_second, limits.message_burst),
      operations: rate("operations", limits.operations_per_second, limits.operation_burst),
      services: rate(
        "services",
        limits.service_operations_per_second,
        limits.service_operation_burst,
      ),
      costs: rate("costs", limits.cost_per_second, limits.cost_burst),
      searches: rate("searches", limits.searches_per_second, limits.search_burst),
    },
    signInThrottle: createSignInThrottle(shared),
    pixels: rate("pixels", limits.image_pixels_per_hour / 3600, limits.image_pixels_per_hour),
    hooks: {
      // As many as Slack accepts, with room for several alerts at once.
      posts: rate("hook posts", 1, 30),
      // Of a network.
      requests: rate("hook requests", limits.operations_per_second, limits.operation_burst),
    },
    throttles: createThrottles(limits, cluster),
  };
}

/**
 * How often to read the change log for what did not arrive otherwise. Without NATS that is what other
 * processes have changed, such as the command that resets a password, and no other node can be away.
 */
const readLog = ({ nats }: Config) => (nats ? { everyMs: 5000 } : { everyMs: 1000, awayMs: 1000 });

/** A separate listener that serves `/metrics` and nothing else. */
const listenForMetrics = (address: Address, services: Services) =>
  listen("PARLEY_METRICS_HOST and PARLEY_METRICS_PORT", address, (given) =>
    Bun.serve({
      ...given,
      fetch: ({ url }) =>
        pathOf(url) === "/metrics"
          ? metricsResponse(services)
          : new Response(null, { status: 404 }),
    }),
  );

type Address = Pick<Config, "host" | "port">;

function listen<Opened>(
  settings: string,
  { host, port }: Address,
  open: (address: { hostname: string; port: number }) => Opened,
): Opened {
  try {
    return open({ hostname: host, port });
  } catch (error) {
    const { code = "", message } = error instanceof Error ? (error as NodeJS.ErrnoException) : {};
    const problem =
      code === "EADDRINUSE"
        ? "another program listens there. Stop it, or choose another port"
        : code === "EACCES" || message?.startsWith("permission denied")
          ? "this user may not listen there. Choose a port above 1023"
          : "the host is no address of this machine. Use 127.0.0.1, or 0.0.0.0 for all addresses";
    const sentence = `${settings} must name an address that is free, not "${host}:${port}"`;
    throw new ConfigError(`${sentence}: ${problem} (${code || message}).`);
  }
}
