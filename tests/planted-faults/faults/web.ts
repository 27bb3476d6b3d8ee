import type { Fault } from "../fault.ts";

/** The composer and other parts of the web client. */
export const web: readonly Fault[] = [
  {
    name: "the composer counts characters, and a message with many accents is refused when it is sent",
    file: "packages/web/src/lib/content-limit.ts",
    find: "const bytes = utf8.encode(text).length;",
    replace: "const bytes = text.length;",
    tests: ["packages/web/test/text.test.ts"],
  },
  {
    name: "the list of mentions offers oneself",
    file: "packages/web/src/chat/composer/mention.ts",
    find: "account.username !== me && fits(account)",
    replace: "fits(account)",
    tests: ["packages/web/test/text.test.ts"],
  },
  {
    name: "a sent message stays in the composer",
    file: "packages/web/src/chat/composer/composer-actions.ts",
    find: `    field.change("", 0);\n`,
    replace: "",
    tests: ["tests/browser/keyboard.test.ts"],
  },
  {
    name: "the Enter that confirms a candidate of an input method sends the message",
    file: "packages/web/src/chat/composer/Composer.tsx",
    find: "if (isCompositionKey(event) || event.altKey) return;",
    replace: "if (event.altKey) return;",
    tests: ["tests/browser/keyboard.test.ts"],
  },
  {
    name: "the «New messages» line stands above one's own message",
    file: "packages/web/src/chat/timeline/rows.ts",
    find: "  seq > readUpTo && sender.username !== me;",
    replace: "  seq > readUpTo;",
    tests: ["packages/web/test/rows.test.ts"],
  },
  {
    name: "imported messages are notified",
    file: "packages/web/src/shell/notifications.ts",
    find: "if (params.finalized_at && !params.imported)",
    replace: "if (params.finalized_at)",
    tests: ["tests/browser/notifications.test.ts"],
  },
  {
    name: "allowing one tool allows the others again that have changed",
    file: "packages/web/src/tools/grants.ts",
    find: "return policy === null ? others : [...others, { server_id, tool, policy }];",
    replace: `const kept = others.map(({ changed, ...grant }) => grant);
  return policy === null ? kept : [...kept, { server_id, tool, policy }];`,
    tests: ["packages/web/test/tools.test.ts"],
  },
];
