import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { mentionedHandles, withoutCode } from "../src/markup/index.ts";
import { handleAtEnd, handlesIn } from "../src/text/handles.ts";

const PARTICIPANTS = new Set([
  "alice",
  "bob",
  "al",
  "a_b",
  "user_2",
  "alice:claude",
  "alice:gpt",
  "bob:claude",
  "bob:my-model",
  "x".repeat(32),
]);

const named = (content: string) =>
  mentionedHandles(content).filter((username) => PARTICIPANTS.has(username));

function examples(table: Record<string, [content: string, names: string[]]>) {
  for (const [name, [content, names]] of Object.entries(table)) {
    test(name, () => expect(named(content)).toEqual(names));
  }
}

describe("who is mentioned", () => {
  examples({
    "nobody is mentioned in plain text": ["alice and bob", []],
    "an @ alone mentions nobody": ["@ alice @", []],
    "a handle is a mention": ["@alice", ["alice"]],
    "a handle may occur anywhere in a sentence": ["Ask @bob, please.", ["bob"]],
    "handles are compared in lowercase": ["@ALICE @Bob:Claude", ["alice", "bob:claude"]],
    "each name is returned once, in the order of first occurrence": [
      "@bob @alice @BOB @alice",
      ["bob", "alice"],
    ],
    "a handle of a non-participant is no mention": ["@carol @alice", ["alice"]],
    "a name may have two characters": ["@al", ["al"]],
    "no name has one character": ["@a", []],
    "a name may have 32 characters": [`@${"x".repeat(32)}`, ["x".repeat(32)]],
    "a longer name is not truncated": [`@${"x".repeat(33)}`, []],
    "names may have digits and underscores": ["@user_2 @a_b", ["user_2", "a_b"]],
    "a mention may be a line of its own": ["hello\n@alice\nbye", ["alice"]],
  });
});

describe("the boundaries of a handle", () => {
  examples({
    "an e-mail address is no mention": ["write to joe@alice.com or joe.x@bob", []],
    "a digit before the @ makes it part of a word": ["joe1@alice", []],
    "an underscore before the @ makes it part of a word": ["joe_@alice", []],
    "a Latin letter with an accent before the @ makes it part of a word": [
      "é@alice e\u0301@bob ø@al",
      [],
    ],
    "a letter of another script may precede the @": ["ж@bob", ["bob"]],
    "a handle needs no spaces around it in scripts without spaces": [
      "请@alice看看，@bob你好。お願い@al:さん ช่วย@a_bหน่อย",
      ["alice", "bob", "al", "a_b"],
    ],
    "a backslash before the @ makes it text": ["\\@alice \\\\\\@bob", []],
    "an escaped backslash before the @ does not make it text": ["\\\\@alice", ["alice"]],
    "two @ are no mention": ["@@alice", []],
    "a longer word is another name": ["@alicea @alice1 @alice_", []],
    "a character that no handle has ends the handle": [
      "@aliceé @bobж @al\u0301",
      ["alice", "bob", "al"],
    ],
    "letters whose lowercase is ASCII are not part of a handle": [
      "@alice\u212a @\u017fam",
      ["alice"],
    ],
    "punctuation ends a handle": [
      "(@alice) @bob! @al? @a_b… «@user_2»",
      ["alice", "bob", "al", "a_b", "user_2"],
    ],
    "a full stop ends a handle": ["It was @alice. Then @bob.", ["alice", "bob"]],
    "an apostrophe ends a handle": ["@alice's idea", ["alice"]],
    "a hyphen ends a person's handle": ["@alice-made", ["alice"]],
    "emphasis and links do not hide a handle": [
      "**@alice** *@bob* [@al](x)",
      ["alice", "bob", "al"],
    ],
    "an emoji is no part of a handle": ["👍@alice👍", ["alice"]],
    "a slash separates two handles": ["@alice/@bob", ["alice", "bob"]],
  });
});

describe("handles of agents", () => {
  examples({
    "an agent's handle names the agent, not its owner": ["@alice:claude", ["alice:claude"]],
    "an owner and an agent may both be named": ["@alice @alice:gpt", ["alice", "alice:gpt"]],
    "a full stop after an agent's handle ends it": ["Ask @alice:claude.", ["alice:claude"]],
    "a colon after an agent's handle ends it": ["@alice:claude: hello", ["alice:claude"]],
    "a provider may have a hyphen": ["@bob:my-model", ["bob:my-model"]],
    "more characters of a handle make it another one": [
      "@alice:claude-x @alice:claude- @alice:claude_ @alice:claude2 @bob:my-model-x",
      [],
    ],
    "other characters end the handle, even without a space": [
      "@alice:claude你好 @bob:claudeさん @alice:gpt…",
      ["alice:claude", "bob:claude", "alice:gpt"],
    ],
    "a colon without a provider ends a person's handle": ["@alice: hello", ["alice"]],
    "a colon and a word make another handle": ["@alice:thanks", []],
    "the handle of an absent agent does not mention its owner": ["@bob:gpt", []],
    "the agent of a non-participant is no mention": ["@carol:claude", []],
    "a time after a name is no agent": ["@alice:30", ["alice"]],
  });
});

describe("handles beside code", () => {
  const FENCE = "```";
  examples({
    "a handle in a code span does not count": ["`@alice` @bob", ["bob"]],
    "a handle between two code spans counts": ["`a` @alice `b`", ["alice"]],
    "a span of two backticks ends at two": ["`` @alice ` @bob `` @al", ["al"]],
    "an unpaired backtick is text": ["` @alice", ["alice"]],
    "runs of different lengths do not pair": ["`` @alice `", ["alice"]],
    "a span may contain a line break": ["`a\n@alice` @bob", ["bob"]],
    "a span ends with its paragraph": ["a ` b\n\n@alice\n\nc ` d", ["alice"]],
    "an escaped backtick opens no span": ["\\`@alice\\`", ["alice"]],
    "a backslash does not escape the end of a span": ["`a\\` @alice `b`", ["alice"]],
    "a handle does not continue after a span": ["@al`x`ice", ["al"]],
    "a span separates the text before and after it": ["joe`x`@alice", ["alice"]],
    "a handle in a fence does not count": [`${FENCE}\n@alice\n${FENCE}\n@bob`, ["bob"]],
    "a handle in the info string of a fence does not count": [`${FENCE}js @alice\n${FENCE}`, []],
    "a fence of tildes is a fence": ["~~~\n@alice\n~~~\n@bob", ["bob"]],
    "a fence closes only with its own character": [`~~~\n${FENCE}\n@alice\n~~~\n@bob`, ["bob"]],
    "a fence closes only with at least as many characters": [
      `${FENCE}${FENCE}\n${FENCE}\n@alice\n${FENCE}${FENCE}\n@bob`,
      ["bob"],
    ],
    "a closing fence has no info string": [`~~~\n~~~ js\n@alice\n~~~\n@bob`, ["bob"]],
    "an unclosed fence extends to the end": [`@bob\n${FENCE}\n@alice`, ["bob"]],
    "a fence may be indented by three spaces": ["   ~~~\n@alice\n   ~~~\n@bob", ["bob"]],
    "a line of backticks with another in its info string is no fence": [
      `${FENCE} a\`b\n@alice`,
      ["alice"],
    ],
    "a fence among lines that end with CR LF is a fence": [
      "~~~\r\n@alice\r\n~~~\r\n@bob\r\n",
      ["bob"],
    ],
    "an unclosed fence among lines that end with CR LF extends to the end": [
      `@bob\r\n${FENCE}\r\n@alice\r\n`,
      ["bob"],
    ],
    "a fence in a list ends there": [`- ${FENCE}\n  @alice\n  ${FENCE}\n\n@bob`, ["bob"]],
    "a fence in a numbered list ends there": [`1. ~~~\n   @alice\n   ~~~\n\n@bob`, ["bob"]],
    "a fence in a quotation ends with it": [`> ~~~\n> @alice\n\n@bob`, ["bob"]],
    "a line indented by four spaces or a tab is code": ["    @alice\n\n\t@alice\n\n@bob", ["bob"]],
    "an indented line that continues a paragraph is not code": ["hello\n    @bob", ["bob"]],
    "a backtick before a fence does not pair with one after it": [
      `\` a\n${FENCE}\ncode\n${FENCE}\n@alice \``,
      ["alice"],
    ],
  });

  test("text without code is unchanged", () => {
    fc.assert(
      fc.property(fc.string(), (content) => {
        fc.pre(!/[`~\\]/.test(content) && !/^(?: {4}|\t)/m.test(content));
        const words = (text: string) => text.match(/[\p{L}@]+/gu) ?? [];
        expect(words(withoutCode(content))).toEqual(words(content));
      }),
    );
  });
});

describe("in any text", () => {
  const fragment = fc.constantFrom(
    ..."@ ` `` ``` ~~~ \n \r\n : - _ . \\ é 👍 alice bob claude @alice @bob @alice:claude".split(
      " ",
    ),
    " ",
  );
  const content = fc.array(fragment, { maxLength: 40 }).map((parts) => parts.join(""));

  test("only participants are mentioned, each once", () => {
    fc.assert(
      fc.property(content, (text) => {
        const names = named(text);
        expect(new Set(names).size).toBe(names.length);
        for (const name of names) expect(PARTICIPANTS.has(name)).toBe(true);
      }),
    );
  });

  test("a mention outside code is found after any text", () => {
    fc.assert(
      fc.property(content, (text) => {
        fc.pre(!/[`~]/.test(text) && !/^ {3}/m.test(text));
        expect(named(`${text} @bob:claude`)).toContain("bob:claude");
      }),
    );
  });

  test("content of the maximum length is searched in linear time", () => {
    for (const part of ["`", "``` ", "@alice:", "@", "` ``", "~~~\n", "\\`", "\\@", "\u0301@"]) {
      expect(named(part.repeat(Math.floor(32_768 / part.length)))).toBeArray();
    }
  });
});

describe("handles in text", () => {
  test("are found with their positions", () => {
    const text = "hi @Alice, 请@bob:my-model看";
    expect(handlesIn(text).map(({ start, end }) => text.slice(start, end))).toEqual([
      "@Alice",
      "@bob:my-model",
    ]);
  });

  test("that are being typed follow the same rules", () => {
    const typed = (text: string) => handleAtEnd(text)?.username ?? null;
    expect(["@", "hi @al", "(@Alice:cl", "请@al", "\\\\@al", "@alice:"].map(typed)).toEqual([
      ...["", "al", "alice:cl", "al", "al", "alice:"],
    ]);
    expect(["joe@al", "é@al", "@@al", "\\@al", "@al ", "1@al"].map(typed)).toEqual(
      Array(6).fill(null),
    );
  });

  test("of any text are also found while they are typed", () => {
    const part = fc.constantFrom(..."@ \\ a é 漢 1 _ : - @al @al:gpt 👍 e\u0301".split(" "), " ");
    fc.assert(
      fc.property(fc.array(part, { maxLength: 20 }), (parts) => {
        const text = parts.join("");
        for (const { start, end, username } of handlesIn(text)) {
          expect(handleAtEnd(text.slice(0, end))).toEqual({ start, end, username });
        }
      }),
    );
  });
});
