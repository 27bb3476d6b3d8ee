import { describe, expect, test } from "bun:test";
import type { AgentProfile, ToolServer } from "@parley/protocol";
import { timeUntil } from "../src/lib/time.ts";
import { decidedCall } from "../src/tools/calls.ts";
import { changedGrants, changesInOrder } from "../src/tools/grants.ts";
import { visibleText } from "../src/tools/visible-text.ts";

describe("arguments that somebody decides about", () => {
  const cases: [text: string, shown: string][] = [
    ["Grüße,\n\tAda 👋", "Grüße,\n\tAda 👋"],
    ["to\u202emoc.live@adb", "to\\u{202e}moc.live@adb"],
    ["pay\u200bpal", "pay\\u{200b}pal"],
    ["a\u0000b\u2028c\r", "a\\u{0}b\\u{2028}c\\u{d}"],
    ["a\u3164b\u2800c\u00a0d\u034f", "a\\u{3164}b\\u{2800}c\\u{a0}d\\u{34f}"],
    ["❤\ufe0f\ufe0f 1\ufe0f", "❤\ufe0f\\u{fe0f} 1\\u{fe0f}"],
    ["\u{e0041}\ud800", "\\u{e0041}\\u{d800}"],
    ["<b>**bold**</b>", "<b>**bold**</b>"],
  ];
  for (const [text, shown] of cases) {
    test(`are shown as ${JSON.stringify(shown)}`, () => expect(visibleText(text)).toBe(shown));
  }
});

describe("the tools of an agent", () => {
  const server = (id: string, ...names: string[]) =>
    ({ id, tools: names.map((name) => ({ name })) }) as ToolServer;
  const agent = {
    tools: [
      { server_id: "s", tool: "kept", policy: "always", changed: false },
      { server_id: "s", tool: "altered", policy: "always", changed: true },
      { server_id: "s", tool: "gone", policy: "always", changed: false },
      { server_id: "removed", tool: "kept", policy: "always", changed: false },
    ],
  } as unknown as AgentProfile;
  const servers = [server("s", "kept", "altered", "new")];

  test("allowing one does not allow a changed one again, and leaves out what is gone", () => {
    const change = { server_id: "s", tool: "new", policy: "direct" } as const;
    expect(changedGrants(agent, servers, change)).toEqual([
      { server_id: "s", tool: "kept", policy: "always", changed: false },
      { server_id: "s", tool: "altered", policy: "always", changed: true },
      { server_id: "s", tool: "new", policy: "direct" },
    ]);
  });

  test("those of the operator's servers that have not answered yet are kept", () => {
    const silent = { ...server("removed"), operator: true, status: "unreachable" } as ToolServer;
    const change = { server_id: "s", tool: "kept", policy: null };
    const kept = changedGrants(agent, [...servers, silent], change);
    expect(kept.map((grant) => `${grant.server_id} ${grant.tool}`)).toEqual([
      "s altered",
      "removed kept",
    ]);
  });

  test("one can be allowed again, and taken away", () => {
    const again = { server_id: "s", tool: "altered", policy: "always" } as const;
    expect(changedGrants(agent, servers, again)).toContainEqual(again);
    const none = { server_id: "s", tool: "kept", policy: null };
    expect(changedGrants(agent, servers, none).map(({ tool }) => tool)).toEqual(["altered"]);
  });
});

test("only buttons that decide about a call name one", () => {
  expect(decidedCall("call:0198:approve")).toBe("0198");
  expect(decidedCall("call:0198:reject")).toBe("0198");
  for (const action of ["call:0198", "call:0198:approve:x", "recall:0198:approve", "tool:echo"]) {
    expect(decidedCall(action)).toBeNull();
  }
});

test("the time until a call expires is given in minutes or hours", () => {
  const now = Date.parse("2026-01-01T00:00:00Z");
  expect(timeUntil("2026-01-02T00:00:00Z", now)).toBe("in 24 hours");
  expect(timeUntil("2026-01-01T00:05:00Z", now)).toBe("in 5 minutes");
  expect(timeUntil("2026-01-01T00:00:01Z", now)).toBe("in 1 minute");
});

test("a change of grants that fails does not undo the ones before it", async () => {
  const inOrder = changesInOrder<readonly string[]>();
  const sent: string[] = [];
  let stored: readonly string[] = [];
  const add = (name: string, isRefused = false) =>
    inOrder(
      [],
      async (known) => {
        sent.push([...known, name].join(" "));
        if (isRefused) throw new Error("refused");
        stored = [...known, name];
        return stored;
      },
      async () => {},
    );
  const all = await Promise.allSettled([add("one"), add("two", true), add("three")]);
  expect(all.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(sent).toEqual(["one", "one two", "one three"]);
  expect(stored).toEqual(["one", "three"]);
});
