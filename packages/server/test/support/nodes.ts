import { until } from "@parley/testkit/until.ts";
import pino from "pino";
import type { Delivered } from "../../src/changes/bus.ts";
import { createNatsBus, type NatsBus, type NatsBusOptions } from "../../src/changes/bus-nats.ts";
import { type Cluster, createCluster } from "../../src/changes/cluster.ts";
import { type Changes, openChangeStream } from "../../src/changes/stream.ts";
import { createHub, type Hub } from "../../src/realtime/hub.ts";
import { countSockets } from "../../src/realtime/sockets.ts";
import { broker, FakeClient, human } from "./broker.ts";
import type { TestChangeLog } from "./change-log.ts";

const log = pino({ level: "silent" });

export interface TestNode extends AsyncDisposable {
  readonly id: string;
  readonly bus: NatsBus;
  readonly hub: Hub;
  readonly cluster: Cluster;
  readonly changes: Changes;
  /** The changes about turns that were delivered. */
  readonly turns: Delivered[];
  /** Connects a client as sockets do, with all conversations of the account. */
  connect(username: string, session?: string): Promise<FakeClient>;
}

export type NodeOptions = Omit<Partial<NatsBusOptions>, "servers"> & {
  everyMs?: number;
  awayMs?: number;
  heartbeatMs?: number;
  nodeTimeoutMs?: number;
  socketsPerUser?: number;
};

/** Starts everything that a node has between its store and its sockets. */
export async function startNode(
  url: string,
  changeLog: TestChangeLog,
  options: NodeOptions = {},
): Promise<TestNode> {
  const {
    everyMs = 3_600_000,
    awayMs = 3_600_000,
    socketsPerUser = 20,
    heartbeatMs = 50,
    nodeTimeoutMs = 500,
  } = options;
  const id = options.node ?? Bun.randomUUIDv7();
  const { readConversation, readText } = changeLog;
  const bus = createNatsBus({
    servers: [url],
    node: id,
    readConversation,
    readText,
    log,
    ...options,
  });
  const cluster = createCluster(bus.channel, { log, heartbeatMs, nodeTimeoutMs });
  const { clients, publish } = broker();
  const hub = createHub(bus, publish, countSockets(cluster, socketsPerUser));
  const store = changeLog.store();
  const changes = await openChangeStream({ store, bus, cluster, node: id, log, everyMs, awayMs });
  const turns: Delivered[] = [];
  changes.listen(hub.receive);
  changes.listen((change) => {
    if (change.kind.startsWith("turns_")) turns.push(change);
  });
  cluster.start();
  await untilReady(bus);

  return {
    id,
    bus,
    hub,
    cluster,
    changes,
    turns,
    async connect(username, session = `session-${username}`) {
      const client = new FakeClient(Bun.randomUUIDv7(), session);
      clients.add(client);
      const account = {
        ...human(username),
        id: changeLog.accountId(username),
        owner_id: null,
        provider: null,
        suspended_at: null,
        erased_at: null,
      };
      const person = hub.enter(account, client);
      client.onClose = () => {
        clients.delete(client);
        hub.leave(person, client);
      };
      let membership: number;
      let counters: ReturnType<TestChangeLog["counters"]>;
      do {
        membership = person.membership;
        counters = changeLog.counters(username);
        await hub.follow(person, counters);
      } while (membership !== person.membership);
      hub.listen(person, client, counters);
      return client;
    },
    async [Symbol.asyncDispose]() {
      await changes.stop();
      cluster.stop();
      await bus.close();
    },
  };
}

export async function untilReady(bus: Pick<NatsBus, "ready">): Promise<void> {
  const isReady = () =>
    bus.ready().then(
      () => true,
      () => false,
    );
  while (!(await isReady())) await Bun.sleep(2);
}

/** Waits until each node knows all others. */
export const untilDiscovered = (...nodes: TestNode[]) =>
  until(
    () => nodes.every(({ cluster }) => cluster.others().length === nodes.length - 1),
    "the nodes know each other",
  );
