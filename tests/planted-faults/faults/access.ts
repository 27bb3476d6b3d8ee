import type { Fault } from "../fault.ts";

/** Operators, the backends of products, and tools. */
export const access: readonly Fault[] = [
  {
    name: "everybody may call the operations of backends",
    file: "packages/server/src/calls/access.ts",
    find: `if (access === "service" && caller.kind === "service") return;`,
    replace: `if (access === "service") return;`,
    tests: ["tests/conformance/access.test.ts", "tests/conformance/users.test.ts"],
  },
  {
    name: "a service key works in a browser",
    file: "packages/server/src/security/authenticate.ts",
    find: `throw forbidden("a service key must not be used in a browser");`,
    replace: "",
    tests: ["tests/conformance/service-keys.test.ts"],
  },
  {
    name: "the agents of a suspended account go on answering",
    file: "packages/server/src/operations/operators.ts",
    find: "  await stopAgentsOf(store, suspended);\n",
    replace: "",
    tests: ["tests/conformance/operators.test.ts"],
  },
  {
    name: "a webhook of somebody who is no operator any more goes on receiving",
    file: "packages/server/src/outbound/webhook-creator.ts",
    find: "if (chat === null || !(await isOperator(tx, account, operators))) return false;",
    replace: "if (chat === null) return false;",
    tests: ["tests/conformance/webhooks.test.ts"],
  },
  {
    name: "a tool that has changed since it was allowed runs without approval",
    file: "packages/server/src/rules/tool-calls.ts",
    find: `(fingerprint === grant.fingerprint ? grant.policy : "ask")`,
    replace: "grant.policy",
    tests: ["tests/conformance/approvals.test.ts"],
  },
  {
    name: "everybody may reject the tool calls of an agent",
    file: "packages/server/src/domain/tool-calls.ts",
    find: "if (call.owner_id !== account.id) {",
    replace: `if (decision === "approve" && call.owner_id !== account.id) {`,
    tests: ["tests/conformance/approvals.test.ts"],
  },
  {
    name: "everybody in the conversation sees what a tool returned",
    file: "packages/server/src/rules/tool-calls.ts",
    find: "result: isOwner ? call.result : null,",
    replace: "result: call.result,",
    tests: ["tests/conformance/tool-calls.test.ts"],
  },
  {
    name: "people can rename and remove the tool servers of others",
    file: "packages/server/src/operations/tools.ts",
    find: `if (server?.owner_id !== caller.account.id) throw notFound("tool server");`,
    replace: `if (!server) throw notFound("tool server");`,
    tests: ["tests/conformance/tools.test.ts"],
  },
  {
    name: "an agent that answers its owner alone answers everybody",
    file: "packages/server/src/rules/dispatch.ts",
    find: `return spenders === "participants" || account.owner_id === asker.id`,
    replace: `return spenders === "participants" || account.owner_id !== null`,
    tests: ["packages/server/test/dispatch.test.ts"],
  },
];
