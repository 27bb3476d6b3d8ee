import type { Fault } from "../fault.ts";

/** The answers of agents, as they stream. */
export const answers: readonly Fault[] = [
  {
    name: "the offsets of an answer count characters instead of bytes",
    file: "packages/server/src/agents/deltas.ts",
    find: "stream.offset += Buffer.byteLength(text);",
    replace: "stream.offset += text.length;",
    tests: ["tests/conformance/turn-streaming.test.ts"],
  },
  {
    name: "text of an answer that was stopped is still sent",
    file: "packages/server/src/agents/deltas.ts",
    find: "if (!endedIds.has(stream.turn.id)) tx.signal",
    replace: "tx.signal",
    tests: ["packages/server/test/deltas.test.ts"],
  },
  {
    name: "a delta that arrives after the end of its answer is delivered",
    file: "packages/server/src/changes/streams.ts",
    find: "else if (!ended.has(part.message)) receiveDelta",
    replace: "else receiveDelta",
    tests: ["packages/server/test/streams.test.ts"],
  },
  {
    name: "an agent is shown as typing after its answer is complete",
    file: "packages/server/src/domain/turns.ts",
    find: "tx.signal(typingOf(turn, false));",
    replace: "",
    tests: ["tests/conformance/turn-streaming.test.ts"],
  },
  {
    name: "an agent does not answer what was asked while it was answering",
    file: "packages/server/src/store/turns.ts",
    find: "}) >= ",
    replace: "}) >= 0 * ",
    tests: ["packages/server/test/store-sqlite.test.ts", "tests/conformance/waiting-turns.test.ts"],
  },
  {
    name: "a program of an external agent can finish its turn with an empty answer",
    file: "packages/server/src/operations/turns.ts",
    find: "const error = errorOf(input, isBlank);",
    replace: "const error = errorOf(input, false);",
    tests: ["tests/conformance/external-agents.test.ts"],
  },
];
