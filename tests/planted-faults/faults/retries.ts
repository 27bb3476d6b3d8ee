import type { Fault } from "../fault.ts";

/** Calls and deliveries that are repeated. */
export const retries: readonly Fault[] = [
  {
    name: "a message that is sent again appears twice",
    file: "packages/server/src/operations/messages.ts",
    find: "      client_msg_id,\n      reply_to_id,\n      mentions,",
    replace: "      client_msg_id: null,\n      reply_to_id,\n      mentions,",
    tests: ["tests/conformance/messages.test.ts"],
  },
  {
    name: "a message with files that is sent again is refused",
    file: "packages/server/src/operations/messages.ts",
    find: "if (sent) return firstSent(tx, conversation, client_msg_id, caller);",
    replace: "",
    tests: ["tests/conformance/files.test.ts"],
  },
  {
    name: "the second retry of a webhook follows without a longer pause",
    file: "packages/server/src/outbound/webhook-lane.ts",
    find: "FIRST_RETRY_MS * 2 ** (attempts - 1)",
    replace: "FIRST_RETRY_MS * 2 ** Math.max(attempts - 2, 0)",
    tests: ["packages/server/test/webhooks.test.ts"],
  },
  {
    name: "changes that are handled twice are sent twice to a webhook",
    file: "packages/server/src/outbound/webhook-queue.ts",
    find: "JSON.stringify([webhookId, cursor, index, change])",
    replace: "JSON.stringify([webhookId, cursor, index, change, Date.now()])",
    tests: ["packages/server/test/webhooks.test.ts"],
  },
  {
    name: "the SDK sends a message again as a new one when the reply was lost",
    file: "packages/client/src/send/outbox.ts",
    find: "      client_msg_id: id,\n",
    replace: "      client_msg_id: createClientMsgId(),\n",
    tests: ["packages/client/test/sending.test.ts"],
  },
  {
    name: "the SDK fails an answer whose text arrived although the reply was lost",
    file: "packages/client/src/agent/answer-writer.ts",
    find: "if (isCallError(error) && error.offset === end) break;",
    replace: "",
    tests: ["packages/client/test/answer-writer.test.ts"],
  },
  {
    name: "a message that was deleted after its reply was lost comes back as not sent",
    file: "packages/client/src/send/outbox.ts",
    find: "this.#neverSent.delete(entry.id);",
    replace: "",
    tests: ["packages/client/test/outbox.test.ts"],
  },
];
