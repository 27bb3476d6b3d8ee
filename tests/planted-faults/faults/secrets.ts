import type { Fault } from "../fault.ts";

/** Keys, tokens and passwords. */
export const secrets: readonly Fault[] = [
  {
    name: "the stored key of one person opens for another",
    file: "packages/server/src/security/vault.ts",
    find: "const boundTo = ({ owner_id, provider }: SealBinding) =>",
    replace: `const boundTo = ({ provider }: SealBinding, owner_id = "") =>`,
    tests: ["packages/server/test/vault.test.ts"],
  },
  {
    name: "a short key is shown whole",
    file: "packages/server/src/security/vault.ts",
    find: "key.length <= TAIL_LENGTH ? MASK",
    replace: "key.length < TAIL_LENGTH ? MASK",
    tests: ["packages/server/test/vault.test.ts", "tests/conformance/agents.test.ts"],
  },
  {
    name: "people see the whole address of an operator's tool server, with the key in it",
    file: "packages/server/src/agents/tools/server-directory.ts",
    find: "new URL(setting.url).origin",
    replace: "setting.url",
    tests: ["tests/operator-tools.test.ts"],
  },
  {
    name: "a new password leaves those signed in who know the old one",
    file: "packages/server/src/domain/sessions.ts",
    find: "return endSessions(tx, account, keptSession);",
    replace: "return 0;",
    tests: ["tests/conformance/sessions.test.ts"],
  },
  {
    name: "a program keeps its socket after its token was revoked",
    file: "packages/server/src/domain/sessions.ts",
    find: `for (const session_id of ids) tx.emit({ kind: "session_ended", session_id });`,
    replace: "",
    tests: ["tests/conformance/external-agents.test.ts"],
  },
];
