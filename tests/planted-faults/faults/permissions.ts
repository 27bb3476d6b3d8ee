import type { Fault } from "../fault.ts";

export const permissions: readonly Fault[] = [
  {
    name: "everybody in a group may delete the messages of others",
    file: "packages/server/src/rules/permissions.ts",
    find: `  message.sender_owner_id === actor.id ||
  conversation.admin_id === actor.id;`,
    replace: `  message.sender_owner_id === actor.id ||
  conversation.admin_id !== null;`,
    tests: ["tests/conformance/deletion.test.ts"],
  },
  {
    name: "the admin of a group may edit the messages of others",
    file: "packages/server/src/operations/messages.ts",
    find: "if (message.sender_id !== caller.account.id) {",
    replace: `const isAdmin = conversation.admin_id === caller.account.id;
    if (message.sender_id !== caller.account.id && !isAdmin) {`,
    tests: ["tests/conformance/messages.test.ts"],
  },
  {
    name: "a person who takes no part in a conversation can read it",
    file: "packages/server/src/domain/access.ts",
    find: `if (!conversation.joined) throw forbidden("you are not a participant of this conversation");`,
    replace: "",
    tests: ["tests/conformance/messages.test.ts", "tests/conformance/members.test.ts"],
  },
  {
    name: "a member who has left still receives events",
    file: "packages/server/src/realtime/event-delivery.ts",
    find: "client.unsubscribe(conversationTopic(conversation));",
    replace: "",
    tests: ["packages/server/test/hub.test.ts", "tests/conformance/members.test.ts"],
  },
  {
    name: "the agents of a member stay in the group when the member leaves",
    file: "packages/server/src/domain/groups.ts",
    find: "(account) => account.id === id || account.owner_id === id",
    replace: "(account) => account.id === id",
    tests: ["tests/conformance/members.test.ts", "tests/conformance/turn-control.test.ts"],
  },
  {
    name: "a person who is blocked can add the blocker to a group",
    file: "packages/server/src/operations/conversations.ts",
    find: "await checkInvitation(tx, caller.account, added);",
    replace: "",
    tests: ["tests/conformance/blocks.test.ts"],
  },
  {
    name: "the person who asked an agent cannot stop its answer",
    file: "packages/server/src/rules/permissions.ts",
    find: "  turn.trigger_sender_id === actor.id ||\n",
    replace: "",
    tests: ["tests/conformance/turn-control.test.ts"],
  },
];
