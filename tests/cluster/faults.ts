import type { Cluster, TestNode } from "@parley/testkit/cluster.ts";

/** A fault that can be injected and repaired. */
export interface Fault {
  begin(cluster: Cluster, node: TestNode): unknown;
  end(cluster: Cluster, node: TestNode): unknown;
  /** Whether the sockets at the node are closed by it. */
  readonly closesSockets?: boolean;
  /** Log lines at level error that the fault may cause. */
  readonly expectedErrors?: RegExp;
}

const DATABASE = /database (?:cannot be reached|does not answer)/;

export const faults = {
  "kill -9 of a node": {
    begin: (_, node) => node.kill(),
    end: (_, node) => node.restart(),
    closesSockets: true,
  },
  "SIGTERM of a node": {
    begin: (_, node) => node.stop(),
    end: (_, node) => node.restart(),
    closesSockets: true,
  },
  "a paused node": {
    begin: (_, node) => node.pause(),
    end: (_, node) => node.resume(),
    // Of a COMMIT during which it was paused.
    expectedErrors: DATABASE,
  },
  "a cut link between a node and NATS": {
    begin: (_, node) => node.disconnectNats(),
    end: (_, node) => node.reconnectNats(),
  },
  "a silent link between a node and NATS": {
    begin: (_, node) => node.disconnectNats("silently"),
    end: (_, node) => node.reconnectNats(),
  },
  "NATS stopped": {
    begin: ({ nats }) => nats.stop(),
    end: ({ nats }) => nats.start(),
  },
  "PostgreSQL stopped": {
    begin: ({ postgres }) => postgres.kill(),
    end: ({ postgres }) => postgres.start(),
    expectedErrors: DATABASE,
  },
} satisfies Record<string, Fault>;

export type FaultName = keyof typeof faults;
export const faultNames = Object.keys(faults) as FaultName[];
export const faultOf = (name: FaultName): Fault => faults[name];
