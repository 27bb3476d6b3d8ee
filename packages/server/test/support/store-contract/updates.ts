import { expect } from "bun:test";
import fc from "fast-check";
import {
  at,
  type Check,
  type Fixture,
  inSequence,
  nextTick,
  START,
  send,
  times,
} from "./fixture.ts";
import { follower, newModel, randomSteps } from "./model.ts";

export function updates(check: Check) {
  async function talk(fixture: Fixture, count: number) {
    const [alice, bob] = await fixture.people("alice", "bob");
    const chat = await fixture.group(alice, bob);
    const sent = await fixture.store.write((tx) =>
      inSequence(times(count), (n) => send(tx, chat, alice, `${n}`)),
    );
    const since = async (seq: number, limit = 100) => {
      const query = { conversationId: chat.id, viewerId: bob.id, since: seq, limit };
      const {
        messages: found,
        deleted_ids,
        changes,
        ...rest
      } = await fixture.store.read((tx) => tx.updates(query));
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
      fixture.writeIn(chat, (tx) =>
        tx.changeGroup(chat.id, { actor: alice, changes: [{ kind: "renamed", title }], at: START }),
      );
    return { alice, bob, chat, sent, since, change };
  }

  check("there are no updates since the latest change", async (fixture) => {
    const { since } = await talk(fixture, 3);
    expect(await since(3)).toEqual({ texts: [], gone: [], seq: 3, has_more: false });
  });

  check("messages are ordered by their latest change", async (fixture) => {
    const { sent, since } = await talk(fixture, 4);
    await fixture.edit(at(sent, 1), "edited");
    const seq = 5;
    expect(await since(0)).toMatchObject({ texts: ["0", "2", "3", "edited"], gone: [], seq });
    expect(await since(3)).toMatchObject({ texts: ["3", "edited"], gone: [], seq });
    expect(await since(4)).toMatchObject({ texts: ["edited"], gone: [], seq });
  });

  check("a change of the group increments the counter and returns no message", async (fixture) => {
    const { since, change } = await talk(fixture, 2);
    await change("one");
    expect(await since(2)).toEqual({ texts: [], gone: [], changed: [3], seq: 3, has_more: false });
    expect(await since(3)).toEqual({ texts: [], gone: [], seq: 3, has_more: false });
  });

  check("pages have messages and changes of the group in counter order", async (fixture) => {
    const { alice, chat, since, change } = await talk(fixture, 2);
    for (const title of ["three", "four", "five"]) await change(title);
    await fixture.send(chat, alice, "six");
    await change("seven");
    const page = { texts: [], gone: [], has_more: true };
    expect(await since(0, 3)).toEqual({ ...page, texts: ["0", "1"], changed: [3], seq: 3 });
    expect(await since(3, 2)).toEqual({ ...page, changed: [4, 5], seq: 5 });
    expect(await since(5, 1)).toEqual({ ...page, texts: ["six"], seq: 6 });
    expect(await since(6, 1)).toEqual({ ...page, changed: [7], seq: 7, has_more: false });
  });

  check("a page never ends inside a change", async (fixture) => {
    const { alice, chat, sent, since } = await talk(fixture, 8);
    await fixture.remove(...sent.slice(1, 6));
    await fixture.send(chat, alice, "after");
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

  check("messages that the viewer has hidden are in deleted_ids", async (fixture) => {
    const { bob, sent, since } = await talk(fixture, 4);
    await fixture.hide(bob, at(sent, 0), at(sent, 3));
    expect(await since(4)).toMatchObject({ texts: [], gone: [0, 3], seq: 4 });
    expect(await since(2)).toMatchObject({ texts: ["2"], gone: [0, 3], seq: 4 });
  });

  check("messages that another member has hidden are not in deleted_ids", async (fixture) => {
    const { alice, sent, since } = await talk(fixture, 2);
    await fixture.hide(alice, at(sent, 0));
    expect(await since(0)).toMatchObject({ texts: ["0", "1"], gone: [] });
  });

  check("a message that was hidden and then deleted is in deleted_ids", async (fixture) => {
    const { bob, sent, since } = await talk(fixture, 3);
    await fixture.hide(bob, at(sent, 1));
    await fixture.remove(at(sent, 1));
    expect(await since(3)).toMatchObject({ texts: [], gone: [1], seq: 4 });
  });

  check("following pages of any size, at any time, gives the current state", async (fixture) => {
    await fc.assert(
      fc.asyncProperty(randomSteps, fc.integer({ min: 1, max: 4 }), (steps, limit) =>
        fixture.store.write(async (tx) => {
          const model = await newModel(tx);
          for (const step of steps) await model.take(step);
          await model.checkFollower(limit);
        }),
      ),
      { numRuns: 100 },
    );
  });

  check("following pages during writes misses nothing", async (fixture) => {
    const { alice, bob, chat } = await talk(fixture, 0);
    const writes = Promise.all(
      times(150).map(async (n) => {
        const message = await fixture.send(chat, alice, `${n}`);
        if (n % 3 === 0) await fixture.edit(message, `${n} edited`);
        if (n % 5 === 0) await fixture.remove(message);
      }),
    );
    let done = false;
    const ended = writes.then(() => {
      done = true;
    });
    const client = follower(chat, bob);
    while (!done) {
      await fixture.store.read((tx) => client.follow(tx, 7));
      await nextTick();
    }
    await ended;
    await fixture.store.read(async (tx) => {
      await client.follow(tx, 7);
      await client.check(tx);
    });
  });
}
