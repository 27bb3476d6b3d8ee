import { expect, test } from "bun:test";
import { parseMarkup } from "@parley/protocol/markup";
import { cardAfter } from "../src/rules/approval-card.ts";

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
])("the card is one of its own after %j", (text) => {
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
