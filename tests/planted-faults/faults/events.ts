import type { Fault } from "../fault.ts";

/** The order of events, and the counters that clients rely on. */
export const events: readonly Fault[] = [
  {
    name: "an event that overtakes the one before it is lost",
    file: "packages/server/src/changes/sequencer.ts",
    find: "if (seq > delivered + 1) return false;",
    replace: "if (seq > delivered + 2) return false;",
    tests: ["packages/server/test/sequencer.test.ts"],
  },
  {
    name: "a person who leaves a group does not receive the event that says so",
    file: "packages/server/src/realtime/event-delivery.ts",
    find: `const topics = "users" in to`,
    replace: `if (leaves) leave(leaves);
    const topics = "users" in to`,
    tests: ["packages/server/test/hub.test.ts", "tests/conformance/members.test.ts"],
  },
  {
    name: "a webhook gets later events of a conversation before the one that failed",
    file: "packages/server/src/outbound/webhook-lane.ts",
    find: "if (attempt.error !== null) return (tx) => tx.finishAttempts(lane, ended, retryMs);",
    replace: "",
    tests: ["packages/server/test/webhooks.test.ts", "tests/conformance/webhooks.test.ts"],
  },
  {
    name: "a person can mark more as read than there is",
    file: "packages/server/src/operations/conversations.ts",
    find: "Math.min(seq, conversation.seq)",
    replace: "seq",
    tests: ["tests/conformance/reading.test.ts"],
  },
  {
    name: "a deleted message is subtracted from the unread count of those who have just read it",
    file: "packages/server/src/store/messages.ts",
    find: "AND last_read_seq < ",
    replace: "AND last_read_seq <= ",
    tests: ["packages/server/test/store-sqlite.test.ts"],
  },
  {
    name: "the last change of a page of getUpdates comes again with the next page",
    file: "packages/server/src/store/updates.ts",
    find: "(id, viewerId)} AND m.seq > ",
    replace: "(id, viewerId)} AND m.seq >= ",
    tests: ["packages/server/test/store-sqlite.test.ts", "tests/conformance/catch-up.test.ts"],
  },
  {
    name: "a page of getUpdates ends inside the deletion of several messages",
    file: "packages/server/src/store/updates.ts",
    find: "{ after: page.seq - 1, upTo",
    replace: "{ after: page.seq, upTo",
    tests: ["packages/server/test/store-sqlite.test.ts", "tests/conformance/catch-up.test.ts"],
  },
];
