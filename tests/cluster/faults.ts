import type { Cluster, TestNode } from "@parley/testkit/cluster.ts";

/** Something that goes wrong, and is put right again. */
export interface Fault {
  begin(cluster: Cluster, node: TestNode): unknown;
  end(cluster: Cluster, node: TestNode): unknown;
  /** Whether it ends the sockets at that node. */
  readonly closesSockets?: boolean;
  /** What nodes may say at level error because of it. */
  readonly explains?: RegExp;
}

const DATABASE = /database cannot be reached/;

export const faults = {
  "kill -9 of a node": {
    begin: (_, node) => node.kill(),
    end: (_, node) => node.restart(),
    closesSockets: true,
  },
  "an orderly stop of a node": {
    begin: (_, node) => node.stop(),
    end: (_, node) => node.restart(),
    closesSockets: true,
  },
  "a node that stands still": {
    begin: (_, node) => node.pause(),
    end: (_, node) => node.resume(),
  },
  "a cut link between a node and NATS": {
    begin: (_, node) => node.cutOff(),
    end: (_, node) => node.mend(),
  },
  "a silent link between a node and NATS": {
    begin: (_, node) => node.cutOff("silently"),
    end: (_, node) => node.mend(),
  },
  "NATS stopped": {
    begin: ({ nats }) => nats.stop(),
    end: ({ nats }) => nats.start(),
  },
  "PostgreSQL stopped": {
    begin: ({ postgres }) => postgres.kill(),
    end: ({ postgres }) => postgres.start(),
    explains: DATABASE,
  },
} satisfies Record<string, Fault>;

export type FaultName = keyof typeof faults;
export const faultNames = Object.keys(faults) as FaultName[];
export const faultOf = (name: FaultName): Fault => faults[name];
