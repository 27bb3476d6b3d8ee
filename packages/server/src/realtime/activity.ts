import type { Cluster } from "../changes/cluster.ts";
import type { Client } from "./people.ts";
import { sharePeople } from "./shared-people.ts";

/** How long it is remembered that somebody was active. */
const REMEMBERED_MS = 60_000;

/** Who is at the screen of a client, on any node. Clients that say nothing take no memory. */
export function createActivity(cluster: Cluster) {
  const clientsOf = new Map<string, Set<Client>>();
  /** When the last active client of a person ceased to be, in that order. */
  const endedAt = new Map<string, number>();
  const here = { has: (username: string) => clientsOf.has(username), all: () => clientsOf.keys() };
  const active = sharePeople(cluster, "activity", here, (username) => {
    endedAt.delete(username);
    if (active.has(username)) return;
    const now = performance.now();
    endedAt.set(username, now);
    for (const [earlier, at] of endedAt) {
      if (now - at < REMEMBERED_MS) break;
      endedAt.delete(earlier);
    }
  });

  return {
    /** Whether the person is at the screen of this client on this node; not once it is closed. */
    set(username: string, client: Client, isActive: boolean): void {
      const clients = clientsOf.get(username);
      if (isActive) {
        clientsOf.set(username, (clients ?? new Set()).add(client));
        if (!clients) active.changedHere(username);
      } else if (clients?.delete(client) && clients.size === 0) {
        clientsOf.delete(username);
        active.changedHere(username);
      }
    },
    /** Whether any client of the person is active now, or was within so many ms, at most a minute. */
    isActive(username: string, withinMs = 0): boolean {
      if (active.has(username)) return true;
      const at = endedAt.get(username);
      return at !== undefined && performance.now() - at < withinMs;
    },
  };
}
