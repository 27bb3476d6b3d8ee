import { expect, test } from "bun:test";
import type { Message } from "@parley/protocol";
import { parseMarkup } from "@parley/protocol/markup";
import { cardAfter } from "../src/rules/approval-card.ts";
import { ownText } from "../src/rules/tool-context.ts";

const call = { uuid: "1", server: "bank", tool: "echo", title: "Echo", arguments: { text: "hi" } };

test.each([
  "",
  "One moment.",
  "Here is the code:\n```\nls",
  "```\r\nls\r\n",
  "~~~~ sh\n```\nls",
  "`````\n```\nls\n```\n",
  "- item\n  ```\n  ls",
  "> ~~~\n> ls",
  '<form id="f">',
  '<form id="f">\n```\nls',
  '<card title="x">',
  '<form id="f"><select name="s"><option>',
  '<button action="call:1:appr',
  '<button action="x">Label',
  "<!-- ",
  "`code",
  "    code",
])("an approval card is a card of its own after the text %j", (text) => {
  expect(parseMarkup(text + cardAfter(text, [call])).at(-1)).toMatchObject({
    type: "card",
    title: "Approval needed",
    children: [
      { type: "markdown" },
      { type: "button", action: "call:1:approve" },
      { type: "button", action: "call:1:reject" },
    ],
  });
});

test.each(["", "One moment.", '<card title="x">\n</card>'])(
  "the model's own text %j ends before the approval card",
  (text) => {
    const quoting = { ...call, arguments: { text: 'A "<card title=" as text' } };
    const content = text + cardAfter(text, [quoting]);
    const message = { content, tool_calls: [{ id: "1" }], turn: null, action: null };
    expect(ownText(message as unknown as Message)).toBe(text);
  },
);
