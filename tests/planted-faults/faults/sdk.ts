import type { Fault } from "../fault.ts";

/** The model of the SDK: reducer, catching up, optimistic changes, assembly of streams. */
export const sdk: readonly Fault[] = [
  {
    name: "an event after a gap is applied, and what is missing is not fetched",
    file: "packages/client/src/model/chat-events.ts",
    find: "if (seq !== state.chat.seq + 1) return state;",
    replace: "if (seq <= state.chat.seq) return state;",
    tests: ["packages/client/test/reducer-messages.test.ts"],
  },
  {
    name: "a late reply brings a deleted message back",
    file: "packages/client/src/model/window.ts",
    find: "if (tombstones.has(message.id) || !isInRange(window, message.seq)) continue;",
    replace: "if (!isInRange(window, message.seq)) continue;",
    tests: ["packages/client/test/reducer-messages.test.ts"],
  },
  {
    name: "names that changed while disconnected are fetched only from the first page",
    file: "packages/client/src/catch-up/catch-up.ts",
    find: "if (page.has_more) await this.#fetchOverview();",
    replace: "",
    tests: ["packages/client/test/catch-up.test.ts"],
  },
  {
    name: "an answer has a hole after a reconnect until it is complete",
    file: "packages/client/src/catch-up/chat-refresh.ts",
    find: "      ...streaming.map(({ id }) => this.#fetchMessage(id)),\n",
    replace: "",
    tests: ["packages/client/test/chat-refresh.test.ts"],
  },
  {
    name: "a message in the outbox disappears when somebody else uses the same client_msg_id",
    file: "packages/client/src/model/outbox.ts",
    find: "(message) => message?.sender.username === state.me?.username,",
    replace: "(message) => message !== null,",
    tests: ["packages/client/test/reducer-streams.test.ts"],
  },
  {
    name: "an edit that the service refused stays on the screen",
    file: "packages/client/src/send/message-changes.ts",
    find: "if (!this.#isInterruption(error)) end();",
    replace: "",
    tests: ["packages/client/test/messages.test.ts"],
  },
  {
    name: "the rest of a delta begins at the wrong place after a character of several bytes",
    file: "packages/client/src/model/append-deltas.ts",
    find: "decoder.decode(bytes.subarray(length - start))",
    replace: "each.delta.slice(length - start)",
    tests: ["packages/client/test/append-deltas.test.ts"],
  },
  {
    name: "an answer gets shorter when an older reply arrives",
    file: "packages/client/src/model/message.ts",
    find: "isStreaming(known) && isStreaming(fetched) && byteLength(known) > byteLength(fetched)",
    replace:
      "isStreaming(known) && isStreaming(fetched) && byteLength(known) < byteLength(fetched)",
    tests: ["packages/client/test/reducer-streams.test.ts"],
  },
  {
    name: "deleting an unread message leaves it in the unread count",
    file: "packages/client/src/model/unread.ts",
    find: "seq > chat.last_read_seq && seq <= chat.seq",
    replace: "seq > chat.last_read_seq && seq < chat.last_read_seq",
    tests: ["packages/client/test/reducer-unread.test.ts"],
  },
];
