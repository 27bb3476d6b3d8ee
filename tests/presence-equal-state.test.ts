import { afterAll, expect, test } from "bun:test";
import type { Presence } from "@parley/protocol";
import { CallFailed, groupOf, type Person, people, type Socket } from "@parley/testkit/client.ts";
import { noRates, startServer } from "@parley/testkit/server.ts";
import { until } from "@parley/testkit/until.ts";
import fc from "fast-check";

/**
 * What a socket has learned of presence, from the reply to `watchPresence` and the events since, must equal
 * what a fresh call answers, whatever people do.
 */

const RANDOM_RUNS = 30;

const server = await startServer(noRates);
afterAll(() => server[Symbol.asyncDispose]());

/** One socket of a person, and what it was told of the others. */
interface Watcher {
  readonly socket: Socket;
  /** The reply, and how many events had arrived before it. */
  readonly items: readonly Presence[];
  readonly from: number;
}

async function watch(person: Person, usernames: string[]): Promise<Watcher> {
  const socket = await person.connect();
  const { items } = await socket.call("watchPresence", { usernames });
  return { socket, items, from: socket.eventsNamed("events.presence").length };
}

/** Times are left out: the hour may have changed since the event. */
const shown = ({ username, online, last_seen_at }: Presence) => ({
  username,
  online,
  isTold: online || last_seen_at !== null,
});

function stateOf({ socket, items, from }: Watcher) {
  const state = new Map(items.map((item) => [item.username, item]));
  for (const { params } of socket.eventsNamed("events.presence").slice(from)) {
    state.set(params.username, params);
  }
  return [...state.values()].map(shown);
}

interface Step {
  kind: string;
  actor: number;
  other: number;
}

const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom(
    ...["open", "open", "close", "close", "hide", "show", "show", "block", "unblock", "unblock"],
    ...["leave", "add", "add", "remove", "direct", "watch"],
  ),
  actor: fc.nat(3),
  other: fc.nat(3),
});

test("random steps of several people leave every watcher with what a fresh call answers", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 25 }), async (steps) => {
      const all = await people(server.url, "ann", "bob", "cat", "dan");
      const usernames = all.map(({ username }) => username);
      const [ann, bob, cat] = all;
      const { id: chat_id } = await groupOf(ann, bob, cat);
      const watchers = await Promise.all(all.slice(0, 3).map((each) => watch(each, usernames)));
      const sockets: Socket[][] = all.map(() => []);
      const perform = async ({ kind, actor, other }: Step): Promise<unknown> => {
        const who = all[actor] as Person;
        const username = usernames[other] as string;
        switch (kind) {
          case "open":
            return sockets[actor]?.push(await who.connect());
          case "close":
            return sockets[actor]?.pop()?.close();
          case "watch": {
            const watcher = watchers[actor];
            if (!watcher) return;
            await watcher.socket.close();
            watchers[actor] = await watch(who, usernames);
            return;
          }
          case "hide":
            return who.call("updateMe", { presence: "hidden" });
          case "show":
            return who.call("updateMe", { presence: "visible" });
          case "block":
            return who.call("blockUser", { username });
          case "unblock":
            return who.call("unblockUser", { username });
          case "leave":
            return who.call("leaveChat", { chat_id });
          case "add":
            return who.call("addChatMembers", { chat_id, usernames: [username] });
          case "remove":
            return who.call("removeChatMember", { chat_id, username });
          default:
            return who.call("startChat", { usernames: [username] });
        }
      };
      for (const each of steps) {
        await perform(each).catch((error) => {
          const expected = error instanceof CallFailed && error.code !== "internal";
          if (!expected) throw error;
        });
      }
      for (const [place, watcher] of watchers.entries()) {
        const fresh = async () =>
          (await (all[place] as Person).call("watchPresence", { usernames })).items.map(shown);
        let last: unknown[] = [];
        await until(async () => {
          last = [stateOf(watcher), await fresh()];
          return Bun.deepEquals(last[0], last[1]);
        }, "the watcher has what a fresh call answers").catch(() =>
          expect(last[0]).toEqual(last[1] as never),
        );
      }
      for (const { socket } of watchers) await socket.close();
      for (const socket of sockets.flat()) await socket.close();
    }),
    { numRuns: RANDOM_RUNS, endOnFailure: true },
  );
});
