import { expect } from "bun:test";
import type { Message } from "@parley/protocol";
import fc from "fast-check";
import { type Check, inTurn, newGroup, START, send, times, type World } from "./world.ts";

export function search(check: Check) {
  async function library(world: World) {
    const [alice, bob] = await world.people("alice", "bob");
    const room = await world.group(alice, bob);
    const write = (...texts: string[]) =>
      world.store.write((tx) => inTurn(texts, (text) => send(tx, room, alice, text)));
    return { alice, bob, room, write };
  }

  check("it finds what has all the words, newest first", async (world) => {
    const { bob, write } = await library(world);
    await write("red green", "green blue", "blue, red: GREEN!", "yellow");
    expect(await world.find(bob, ["green"])).toEqual([
      "blue, red: GREEN!",
      "green blue",
      "red green",
    ]);
    expect(await world.find(bob, ["red", "green"])).toEqual(["blue, red: GREEN!", "red green"]);
    expect(await world.find(bob, ["green", "yellow"])).toEqual([]);
    expect(await world.find(bob, [])).toEqual([]);
  });

  check("the last word may be the beginning of one, the others may not", async (world) => {
    const { bob, write } = await library(world);
    await write("lunch tomorrow", "lunchbox");
    expect(await world.find(bob, ["lun"])).toEqual(["lunchbox", "lunch tomorrow"]);
    expect(await world.find(bob, ["lunch", "tom"])).toEqual(["lunch tomorrow"]);
    expect(await world.find(bob, ["tom", "lunch"])).toEqual([]);
    expect(await world.find(bob, ["unch"])).toEqual([]);
  });

  check("case and accents do not matter, in any alphabet", async (world) => {
    const { bob, write } = await library(world);
    await write(
      "Un CAFÉ crème",
      "cafe\u0301 noir",
      "Привет, МИР",
      "東京 tower",
      "Ähre",
      "Йод",
      "안녕하세요",
    );
    expect(await world.find(bob, ["cafe"])).toEqual(["cafe\u0301 noir", "Un CAFÉ crème"]);
    expect(await world.find(bob, ["café"])).toEqual(["cafe\u0301 noir", "Un CAFÉ crème"]);
    expect(await world.find(bob, ["creme"])).toEqual(["Un CAFÉ crème"]);
    expect(await world.find(bob, ["привет", "мир"])).toEqual(["Привет, МИР"]);
    expect(await world.find(bob, ["東京"])).toEqual(["東京 tower"]);
    expect(await world.find(bob, ["ahre"])).toEqual(["Ähre"]);
    expect(await world.find(bob, ["йод"])).toEqual(["Йод"]);
    expect(await world.find(bob, ["안녕"])).toEqual(["안녕하세요"]);
  });

  check("any part of a text in a script without spaces is found", async (world) => {
    const { bob, write } = await library(world);
    const [japanese, chinese, thai, mixed] = [
      "今日は東京で会議があります。",
      "我们明天去北京开会",
      "ฉันรักภาษาไทย",
      "iPhoneを買う",
    ];
    await write(japanese, chinese, thai, mixed);
    for (const part of ["今日", "東京", "東京で会議", "会", "ます"]) {
      expect(await world.find(bob, [part])).toContain(japanese);
    }
    expect(await world.find(bob, ["東京", "会議"])).toEqual([japanese]);
    expect(await world.find(bob, ["会", "北京"])).toEqual([chinese]);
    expect(await world.find(bob, ["京開"])).toEqual([]);
    expect(await world.find(bob, ["ภาษา"])).toEqual([thai]);
    expect(await world.find(bob, ["買う"])).toEqual([mixed]);
    expect(await world.find(bob, ["iphone", "買う"])).toEqual([mixed]);
    expect(await world.find(bob, ["iphoneを"])).toEqual([mixed]);
  });

  check("it looks into one's own conversations only, or into one of them", async (world) => {
    const { alice, bob, room, write } = await library(world);
    await write("needle here");
    const hers = await world.group(alice);
    await world.send(hers, alice, "needle there");
    expect(await world.find(alice, ["needle"])).toEqual(["needle there", "needle here"]);
    expect(await world.find(bob, ["needle"])).toEqual(["needle here"]);
    expect(await world.find(alice, ["needle"], { conversationId: room.id })).toEqual([
      "needle here",
    ]);
    expect(await world.find(bob, ["needle"], { conversationId: hers.id })).toEqual([]);
  });

  check(
    "whoever leaves finds nothing there any more, and whoever joins finds everything",
    async (world) => {
      const { bob, room, write } = await library(world);
      const [carol] = await world.people("carol");
      await write("needle");
      await world.store.write(async (tx) => {
        await tx.deleteMembers(room.id, [bob.id]);
        await tx.insertMembers(room.id, [carol.id], START);
      });
      expect(await world.find(bob, ["needle"])).toEqual([]);
      expect(await world.find(carol, ["needle"])).toEqual(["needle"]);
    },
  );

  check("it knows of edits, deletions and what one has hidden, at once", async (world) => {
    const { alice, bob, write } = await library(world);
    const [one, two, three] = (await write("needle one", "needle two", "needle three")) as [
      Message,
      Message,
      Message,
    ];
    expect(await world.find(bob, ["needle"])).toHaveLength(3);
    await world.edit(one, "pin one");
    await world.remove(two);
    await world.hide(bob, three);
    expect(await world.find(bob, ["needle"])).toEqual([]);
    expect(await world.find(alice, ["needle"])).toEqual(["needle three"]);
    expect(await world.find(bob, ["pin"])).toEqual(["pin one"]);
    const [four] = (await write("needle four")) as [Message];
    await world.edit(four, "pin four");
    await world.edit(four, "needle again");
    expect(await world.find(bob, ["needle"])).toEqual(["needle again"]);
    expect(await world.find(bob, ["four"])).toEqual([]);
  });

  check("following its pages by position gives every hit once", async (world) => {
    const { bob, write } = await library(world);
    const sent = await write(...times(23).map((n) => `needle ${n}`));
    await world.hide(bob, ...sent.filter((_, n) => n % 4 === 0));
    const found: string[] = [];
    for (let before: number | undefined; ; ) {
      const query = { words: ["needle"], viewerId: bob.id, limit: 5, before };
      const page = await world.store.search(query);
      found.push(...page.map(({ uuid }) => uuid));
      before = page.at(-1)?.position;
      if (before === undefined) break;
    }
    const visible = sent.filter((_, n) => n % 4 !== 0).map(({ id }) => id);
    expect(found).toEqual(visible.toReversed());
  });

  check(
    "it finds what the viewer can see behind any number of hits that they cannot",
    async (world) => {
      const { bob, write } = await library(world);
      await write("needle first");
      const hidden = await write(...times(450).map((n) => `needle ${n}`));
      await world.hide(bob, ...hidden);
      expect(await world.find(bob, ["needle"], { limit: 1 })).toEqual(["needle first"]);
    },
  );

  check("it finds its way through hundreds of conversations", async (world) => {
    const { alice, bob } = await library(world);
    await world.store.write((tx) =>
      inTurn(times(450), async (n) => {
        const room = await newGroup(tx, n % 3 === 0 ? [alice] : [alice, bob]);
        if (n % 100 === 0) await send(tx, room, alice, `needle ${n}`);
      }),
    );
    expect(await world.find(alice, ["needle"])).toEqual(
      [400, 300, 200, 100, 0].map((n) => `needle ${n}`),
    );
    expect(await world.find(bob, ["needle"])).toEqual([400, 200, 100].map((n) => `needle ${n}`));
  });

  check("what belongs to others neither shows nor takes a place on a page", async (world) => {
    const { alice, bob } = await library(world);
    const rooms = await world.store.write((tx) => inTurn(times(450), () => newGroup(tx, [bob])));
    const mine = rooms.filter((_, n) => n % 90 === 0);
    const foreign = await world.group(alice);
    await world.store.write(async (tx) => {
      for (const [n, room] of mine.entries()) {
        await inTurn(times(50), (m) => send(tx, foreign, alice, `needle ${m}`));
        await send(tx, room, bob, `needle mine ${n}`);
      }
    });
    const found: string[] = [];
    for (let before: number | undefined; ; ) {
      const page = await world.store.search({
        words: ["need"],
        viewerId: bob.id,
        limit: 2,
        before,
      });
      found.push(...page.map(({ uuid }) => uuid));
      before = page.at(-1)?.position;
      if (before === undefined) break;
    }
    const views = await world.store.read((tx) => tx.messageViews(found, bob.id));
    expect(views.map(({ content }) => content)).toEqual(
      [4, 3, 2, 1, 0].map((n) => `needle mine ${n}`),
    );
  });

  check("characters with a meaning to search engines have none here", async (world) => {
    const { bob, room, write } = await library(world);
    await write("plain words", "and or not near", "a-b a:b", "50% off_it");
    const syntax = [
      ...`" ' * ^ - + : ( ) { } [ ] \\ | & ! % _ < > ~ / ; , . @ # $ \``.split(" "),
      ..."content:plain {content}:plain ^plain -plain plain* *plain NEAR(plain,words)".split(" "),
      ..."plain:* plain&words plain|words !plain <-> 'plain''words".split(" "),
      `c${room.id}`,
      'plain" OR "words',
      "plain') OR 1=1 --",
      "\\\\",
    ];
    for (const word of syntax) {
      const found = await world.find(bob, [word]);
      const bare = (word.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).join(" ");
      // Either the whole is taken as text, and then found where that text stands, or as nothing.
      for (const text of found) expect([word, text]).toEqual([word, expect.stringContaining(bare)]);
      if (bare === "") expect([word, found]).toEqual([word, []]);
    }
    for (const word of ["and", "or", "not", "near", "AND", "OR", "NOT", "NEAR"]) {
      expect([word, await world.find(bob, [word])]).toEqual([word, ["and or not near"]]);
    }
  });

  check(
    "a word of which the engine knows no character finds nothing, and not everything",
    async (world) => {
      const { bob, write } = await library(world);
      await write("plain words");
      for (const word of ["\u0301", "\u{1e900}", "👍", "…", ""]) {
        expect([word, await world.find(bob, [word])]).toEqual([word, []]);
      }
    },
  );

  check("no words make it fail, or show what is somebody else's", async (world) => {
    const { alice, bob, write } = await library(world);
    await write("plain words", "AND OR", "é 東京 1 2 3");
    const secret = await world.group(alice);
    await world.send(secret, alice, "plain secret AND OR é 東京 1 2 3");
    const words = fc.array(fc.string({ unit: "grapheme", maxLength: 8 }), { maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(words, async (any) => {
        expect(await world.find(bob, any)).not.toContainEqual(expect.stringContaining("secret"));
      }),
      { numRuns: 100 },
    );
  });
}
