import { expect } from "bun:test";
import fc from "fast-check";
import { follower, newStory, script } from "./story.ts";
import { at, type Check, inTurn, nextTurn, START, send, times, type World } from "./world.ts";

export function updates(check: Check) {
  async function talk(world: World, count: number) {
    const [alice, bob] = await world.people("alice", "bob");
    const room = await world.group(alice, bob);
    const sent = await world.store.write((tx) =>
      inTurn(times(count), (n) => send(tx, room, alice, `${n}`)),
    );
    const since = async (seq: number, limit = 100) => {
      const query = { conversationId: room.id, viewerId: bob.id, since: seq, limit };
      const {
        messages: found,
        deleted_ids,
        changes,
        ...rest
      } = await world.store.read((tx) => tx.updates(query));
      const texts = found.map(({ content }) => content);
      const gone = deleted_ids.map((id) => sent.findIndex((message) => message.id === id));
      return {
        texts,
        gone: gone.toSorted((one, other) => one - other),
        ...(changes.length > 0 && { changed: changes.map(({ seq: place }) => place) }),
        ...rest,
      };
    };
    const change = (title: string) =>
      world.store.write((tx) =>
        tx.changeGroup(room.id, { actor: alice, changes: [{ kind: "renamed", title }], at: START }),
      );
    return { alice, bob, room, sent, since, change };
  }

  check("there is nothing new since the latest change", async (world) => {
    const { since } = await talk(world, 3);
    expect(await since(3)).toEqual({ texts: [], gone: [], seq: 3, has_more: false });
  });

  check("messages come in the order of their latest change", async (world) => {
    const { sent, since } = await talk(world, 4);
    await world.edit(at(sent, 1), "edited");
    const seq = 5;
    expect(await since(0)).toMatchObject({ texts: ["0", "2", "3", "edited"], gone: [], seq });
    expect(await since(3)).toMatchObject({ texts: ["3", "edited"], gone: [], seq });
    expect(await since(4)).toMatchObject({ texts: ["edited"], gone: [], seq });
  });

  check("a change of the group itself moves the counter and brings no message", async (world) => {
    const { since, change } = await talk(world, 2);
    await change("one");
    expect(await since(2)).toEqual({ texts: [], gone: [], changed: [3], seq: 3, has_more: false });
    expect(await since(3)).toEqual({ texts: [], gone: [], seq: 3, has_more: false });
  });

  check("changes of the group come in pages with the messages, in order", async (world) => {
    const { alice, room, since, change } = await talk(world, 2);
    for (const title of ["three", "four", "five"]) await change(title);
    await world.send(room, alice, "six");
    await change("seven");
    const page = { texts: [], gone: [], has_more: true };
    expect(await since(0, 3)).toEqual({ ...page, texts: ["0", "1"], changed: [3], seq: 3 });
    expect(await since(3, 2)).toEqual({ ...page, changed: [4, 5], seq: 5 });
    expect(await since(5, 1)).toEqual({ ...page, texts: ["six"], seq: 6 });
    expect(await since(6, 1)).toEqual({ ...page, changed: [7], seq: 7, has_more: false });
  });

  check("a page never ends inside one change", async (world) => {
    const { alice, room, sent, since } = await talk(world, 8);
    await world.remove(...sent.slice(1, 6));
    await world.send(room, alice, "after");
    const page = await since(8, 2);
    expect(page).toEqual({ texts: [], gone: [1, 2, 3, 4, 5], seq: 9, has_more: true });
    expect(await since(9, 2)).toEqual({ texts: ["after"], gone: [], seq: 10, has_more: false });
    expect(await since(6, 3)).toEqual({
      texts: ["6", "7"],
      gone: [1, 2, 3, 4, 5],
      seq: 9,
      has_more: true,
    });
  });

  check("what the viewer has hidden since is gone for them", async (world) => {
    const { bob, sent, since } = await talk(world, 4);
    await world.hide(bob, at(sent, 0), at(sent, 3));
    expect(await since(4)).toMatchObject({ texts: [], gone: [0, 3], seq: 4 });
    expect(await since(2)).toMatchObject({ texts: ["2"], gone: [0, 3], seq: 4 });
  });

  check("what another has hidden is still there", async (world) => {
    const { alice, sent, since } = await talk(world, 2);
    await world.hide(alice, at(sent, 0));
    expect(await since(0)).toMatchObject({ texts: ["0", "1"], gone: [] });
  });

  check(
    "what was hidden and then deleted is gone for somebody who was away for both",
    async (world) => {
      const { bob, sent, since } = await talk(world, 3);
      await world.hide(bob, at(sent, 1));
      await world.remove(at(sent, 1));
      expect(await since(3)).toMatchObject({ texts: [], gone: [1], seq: 4 });
    },
  );

  check(
    "following them in pages of any size, at any time, gives exactly the state",
    async (world) => {
      await fc.assert(
        fc.asyncProperty(script, fc.integer({ min: 1, max: 4 }), (steps, limit) =>
          world.store.write(async (tx) => {
            const story = await newStory(tx);
            for (const step of steps) await story.take(step);
            await story.checkFollower(limit);
          }),
        ),
        { numRuns: 100 },
      );
    },
  );

  check("following them while others write misses nothing", async (world) => {
    const { alice, bob, room } = await talk(world, 0);
    const writes = Promise.all(
      times(150).map(async (n) => {
        const message = await world.send(room, alice, `${n}`);
        if (n % 3 === 0) await world.edit(message, `${n} edited`);
        if (n % 5 === 0) await world.remove(message);
      }),
    );
    let done = false;
    const ended = writes.then(() => {
      done = true;
    });
    const client = follower(room, bob);
    while (!done) {
      await world.store.read((tx) => client.follow(tx, 7));
      await nextTurn();
    }
    await ended;
    await world.store.read(async (tx) => {
      await client.follow(tx, 7);
      await client.check(tx);
    });
  });
}
