import { expect } from "bun:test";
import type { File, Message } from "@parley/protocol";
import fc from "fast-check";
import { searchPatiently } from "../search.ts";
import { type Check, type Fixture, inSequence, newGroup, START, send, times } from "./fixture.ts";

export function search(check: Check) {
  async function library(fixture: Fixture) {
    const [alice, bob] = await fixture.people("alice", "bob");
    const chat = await fixture.group(alice, bob);
    const write = (...texts: string[]) =>
      fixture.store.write((tx) => inSequence(texts, (text) => send(tx, chat, alice, text)));
    return { alice, bob, chat, write };
  }

  const named = (name: string): File => ({
    id: Bun.randomUUIDv7(),
    name,
    type: "application/octet-stream",
    size: 1,
    status: "ready",
    width: null,
    height: null,
    duration_ms: null,
    placeholder: null,
  });

  check("hits have all the words, newest first", async (fixture) => {
    const { bob, write } = await library(fixture);
    await write("red green", "green blue", "blue, red: GREEN!", "yellow");
    expect(await fixture.find(bob, ["green"])).toEqual([
      "blue, red: GREEN!",
      "green blue",
      "red green",
    ]);
    expect(await fixture.find(bob, ["red", "green"])).toEqual(["blue, red: GREEN!", "red green"]);
    expect(await fixture.find(bob, ["green", "yellow"])).toEqual([]);
    expect(await fixture.find(bob, [])).toEqual([]);
  });

  check("the last word matches as a prefix, the others do not", async (fixture) => {
    const { bob, write } = await library(fixture);
    await write("lunch tomorrow", "lunchbox");
    expect(await fixture.find(bob, ["lun"])).toEqual(["lunchbox", "lunch tomorrow"]);
    expect(await fixture.find(bob, ["lunch", "tom"])).toEqual(["lunch tomorrow"]);
    expect(await fixture.find(bob, ["tom", "lunch"])).toEqual([]);
    expect(await fixture.find(bob, ["unch"])).toEqual([]);
  });

  check("case and accents are ignored, in any script", async (fixture) => {
    const { bob, write } = await library(fixture);
    await write(
      "Un CAFÉ crème",
      "cafe\u0301 noir",
      "Привет, МИР",
      "東京 tower",
      "Ähre",
      "Йод",
      "안녕하세요",
    );
    expect(await fixture.find(bob, ["cafe"])).toEqual(["cafe\u0301 noir", "Un CAFÉ crème"]);
    expect(await fixture.find(bob, ["café"])).toEqual(["cafe\u0301 noir", "Un CAFÉ crème"]);
    expect(await fixture.find(bob, ["creme"])).toEqual(["Un CAFÉ crème"]);
    expect(await fixture.find(bob, ["привет", "мир"])).toEqual(["Привет, МИР"]);
    expect(await fixture.find(bob, ["東京"])).toEqual(["東京 tower"]);
    expect(await fixture.find(bob, ["ahre"])).toEqual(["Ähre"]);
    expect(await fixture.find(bob, ["йод"])).toEqual(["Йод"]);
    expect(await fixture.find(bob, ["안녕"])).toEqual(["안녕하세요"]);
  });

  check("any part of a text in a script without spaces is found", async (fixture) => {
    const { bob, write } = await library(fixture);
    const [japanese, chinese, thai, mixed] = [
      "今日は東京で会議があります。",
      "我们明天去北京开会",
      "ฉันรักภาษาไทย",
      "iPhoneを買う",
    ];
    await write(japanese, chinese, thai, mixed);
    for (const part of ["今日", "東京", "東京で会議", "会", "ます"]) {
      expect(await fixture.find(bob, [part])).toContain(japanese);
    }
    expect(await fixture.find(bob, ["東京", "会議"])).toEqual([japanese]);
    expect(await fixture.find(bob, ["会", "北京"])).toEqual([chinese]);
    expect(await fixture.find(bob, ["京開"])).toEqual([]);
    expect(await fixture.find(bob, ["ภาษา"])).toEqual([thai]);
    expect(await fixture.find(bob, ["買う"])).toEqual([mixed]);
    expect(await fixture.find(bob, ["iphone", "買う"])).toEqual([mixed]);
    expect(await fixture.find(bob, ["iphoneを"])).toEqual([mixed]);
  });

  check("words that mix scripts with and without spaces are found", async (fixture) => {
    const { bob, write } = await library(fixture);
    const mixed = "大東京2024年の会議roomで新型iPhoneを見る";
    await write(mixed, "2024年の東京", "room会議");
    for (const part of [
      "東京2024",
      "東京2024年の",
      "京2024年",
      "会議roomで",
      "新型iph",
      "型iphoneを見",
    ]) {
      expect([part, await fixture.find(bob, [part])]).toEqual([part, [mixed]]);
    }
    expect(await fixture.find(bob, ["東京20"])).toEqual([mixed]);
    expect(await fixture.find(bob, ["東京20", "iphone"])).toEqual([]);
  });

  check("letters of a script without spaces are found in their order only", async (fixture) => {
    const { bob, write } = await library(fixture);
    const limit = 2;
    await write("東京都に住む", ...times(limit + 1).map(() => "京都と東京"));
    const found = await fixture.find(bob, ["東京都"], { limit });
    expect(found).toEqual(["東京都に住む"]);
  });

  check("names of files are searched, in any script", async (fixture) => {
    const { alice, bob, chat } = await library(fixture);
    await fixture.store.write(async (tx) => {
      await send(tx, chat, alice, "plan", { files: [named("東京都の地図.pdf")] });
      await send(tx, chat, alice, "photo", {
        files: [named("IMG 1.jpg"), named("京都と東京.jpg")],
      });
    });
    expect(await fixture.find(bob, ["東京都"])).toEqual(["plan"]);
    expect(await fixture.find(bob, ["京都と東京"])).toEqual(["photo"]);
    expect(await fixture.find(bob, ["plan", "東京都の"])).toEqual(["plan"]);
    expect(await fixture.find(bob, ["img"])).toEqual(["photo"]);
    // A word does not begin in the text and end in a name.
    expect(await fixture.find(bob, ["photoimg"])).toEqual([]);
  });

  check("only the viewer's conversations are searched, or one of them", async (fixture) => {
    const { alice, bob, chat, write } = await library(fixture);
    await write("needle here");
    const hers = await fixture.group(alice);
    await fixture.send(hers, alice, "needle there");
    expect(await fixture.find(alice, ["needle"])).toEqual(["needle there", "needle here"]);
    expect(await fixture.find(bob, ["needle"])).toEqual(["needle here"]);
    expect(await fixture.find(alice, ["needle"], { conversationId: chat.id })).toEqual([
      "needle here",
    ]);
    expect(await fixture.find(bob, ["needle"], { conversationId: hers.id })).toEqual([]);
  });

  check(
    "a member who leaves finds nothing there any more, a new member finds everything",
    async (fixture) => {
      const { bob, chat, write } = await library(fixture);
      const [carol] = await fixture.people("carol");
      await write("needle");
      await fixture.writeIn(chat, async (tx) => {
        await tx.deleteMembers(chat.id, [bob.id]);
        await tx.insertMembers(chat.id, [carol.id], START);
      });
      expect(await fixture.find(bob, ["needle"])).toEqual([]);
      expect(await fixture.find(carol, ["needle"])).toEqual(["needle"]);
    },
  );

  check("edits, deletions and hidden messages take effect at once", async (fixture) => {
    const { alice, bob, write } = await library(fixture);
    const [one, two, three] = (await write("needle one", "needle two", "needle three")) as [
      Message,
      Message,
      Message,
    ];
    expect(await fixture.find(bob, ["needle"])).toHaveLength(3);
    await fixture.edit(one, "pin one");
    await fixture.remove(two);
    await fixture.hide(bob, three);
    expect(await fixture.find(bob, ["needle"])).toEqual([]);
    expect(await fixture.find(alice, ["needle"])).toEqual(["needle three"]);
    expect(await fixture.find(bob, ["pin"])).toEqual(["pin one"]);
    const [four] = (await write("needle four")) as [Message];
    await fixture.edit(four, "pin four");
    await fixture.edit(four, "needle again");
    expect(await fixture.find(bob, ["needle"])).toEqual(["needle again"]);
    expect(await fixture.find(bob, ["four"])).toEqual([]);
  });

  check("pages by position have each hit once", async (fixture) => {
    const { bob, write } = await library(fixture);
    const sent = await write(...times(23).map((n) => `needle ${n}`));
    await fixture.hide(bob, ...sent.filter((_, n) => n % 4 === 0));
    const found: string[] = [];
    for (let before: number | undefined; ; ) {
      const query = { words: ["needle"], viewerId: bob.id, limit: 5, before };
      const page = await searchPatiently(fixture.store, query);
      found.push(...page.map(({ uuid }) => uuid));
      before = page.at(-1)?.position;
      if (before === undefined) break;
    }
    const visible = sent.filter((_, n) => n % 4 !== 0).map(({ id }) => id);
    expect(found).toEqual(visible.toReversed());
  });

  check("visible hits are found behind any number of invisible ones", async (fixture) => {
    const { bob, write } = await library(fixture);
    await write("needle first");
    const hidden = await write(...times(450).map((n) => `needle ${n}`));
    await fixture.hide(bob, ...hidden);
    expect(await fixture.find(bob, ["needle"], { limit: 1 })).toEqual(["needle first"]);
  });

  check(
    "a viewer with hundreds of conversations finds messages in all of them",
    async (fixture) => {
      const { alice, bob } = await library(fixture);
      await fixture.store.write((tx) =>
        inSequence(times(450), async (n) => {
          const chat = await newGroup(tx, n % 3 === 0 ? [alice] : [alice, bob]);
          if (n % 100 === 0) await send(tx, chat, alice, `needle ${n}`);
        }),
      );
      expect(await fixture.find(alice, ["needle"])).toEqual(
        [400, 300, 200, 100, 0].map((n) => `needle ${n}`),
      );
      expect(await fixture.find(bob, ["needle"])).toEqual(
        [400, 200, 100].map((n) => `needle ${n}`),
      );
    },
  );

  check("messages of others are neither shown nor counted on a page", async (fixture) => {
    const { alice, bob } = await library(fixture);
    const chats = await fixture.store.write((tx) =>
      inSequence(times(450), () => newGroup(tx, [bob])),
    );
    const mine = chats.filter((_, n) => n % 90 === 0);
    const foreign = await fixture.group(alice);
    await fixture.store.write(async (tx) => {
      for (const [n, chat] of mine.entries()) {
        await inSequence(times(50), (m) => send(tx, foreign, alice, `needle ${m}`));
        await send(tx, chat, bob, `needle mine ${n}`);
      }
    });
    const found: string[] = [];
    for (let before: number | undefined; ; ) {
      const page = await searchPatiently(fixture.store, {
        words: ["need"],
        viewerId: bob.id,
        limit: 2,
        before,
      });
      found.push(...page.map(({ uuid }) => uuid));
      before = page.at(-1)?.position;
      if (before === undefined) break;
    }
    const views = await fixture.store.read((tx) => tx.messageViews(found, bob.id));
    expect(views.map(({ content }) => content)).toEqual(
      [4, 3, 2, 1, 0].map((n) => `needle mine ${n}`),
    );
  });

  check("operators of search engines have no meaning", async (fixture) => {
    const { bob, chat, write } = await library(fixture);
    await write("plain words", "and or not near", "a-b a:b", "50% off_it");
    const syntax = [
      ...`" ' * ^ - + : ( ) { } [ ] \\ | & ! % _ < > ~ / ; , . @ # $ \``.split(" "),
      ..."content:plain {content}:plain ^plain -plain plain* *plain NEAR(plain,words)".split(" "),
      ..."plain:* plain&words plain|words !plain <-> 'plain''words".split(" "),
      `c${chat.id}`,
      'plain" OR "words',
      "plain') OR 1=1 --",
      "\\\\",
    ];
    for (const word of syntax) {
      const found = await fixture.find(bob, [word]);
      const bare = (word.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).join(" ");
      // Either the whole is taken as text, and then found where that text stands, or as nothing.
      for (const text of found) expect([word, text]).toEqual([word, expect.stringContaining(bare)]);
      if (bare === "") expect([word, found]).toEqual([word, []]);
    }
    for (const word of ["and", "or", "not", "near", "AND", "OR", "NOT", "NEAR"]) {
      expect([word, await fixture.find(bob, [word])]).toEqual([word, ["and or not near"]]);
    }
  });

  check("a word without indexed characters finds nothing", async (fixture) => {
    const { bob, write } = await library(fixture);
    await write("plain words");
    for (const word of ["\u0301", "\u{1e900}", "👍", "…", ""]) {
      expect([word, await fixture.find(bob, [word])]).toEqual([word, []]);
    }
  });

  check("no query fails, or finds messages of others", async (fixture) => {
    const { alice, bob, write } = await library(fixture);
    await write("plain words", "AND OR", "é 東京 1 2 3");
    const secret = await fixture.group(alice);
    await fixture.send(secret, alice, "plain secret AND OR é 東京 1 2 3");
    const words = fc.array(fc.string({ unit: "grapheme", maxLength: 8 }), { maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(words, async (any) => {
        expect(await fixture.find(bob, any)).not.toContainEqual(expect.stringContaining("secret"));
      }),
      { numRuns: 100 },
    );
  });
}
