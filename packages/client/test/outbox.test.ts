import { expect, test } from "bun:test";
import { callError } from "../src/errors.ts";
import type { Uploader } from "../src/files/uploader.ts";
import { createStore } from "../src/model/store.ts";
import { Attachments } from "../src/send/attachments.ts";
import { Outbox } from "../src/send/outbox.ts";
import { ann, CHAT } from "./support/records.ts";

test("a message that was deleted after its reply was lost is not shown as failed", async () => {
  const store = createStore("online");
  store.dispatch({ type: "me", me: ann });
  const errors = [
    callError("unavailable", "no reply", { retry_after: 0.001 }),
    callError("not_found", "not found: message", {
      fields: { client_msg_id: "is that of a deleted message" },
    }),
  ];
  const sendMessage = () => Promise.reject(errors.shift());
  const attachments = new Attachments(store, {} as Uploader, undefined);
  const outbox = new Outbox({ store, api: { sendMessage }, attachments, canSend: () => true });
  const { promise: settled, resolve } = Promise.withResolvers<void>();
  store.onChange(({ outbox: { [CHAT]: entries = [] } }) => {
    if (!entries.some(({ delivery }) => delivery === "sending")) resolve();
  });
  outbox.add(CHAT, "hello", {});
  await settled;
  expect(errors).toEqual([]);
  expect(store.state.outbox).toEqual({});
});
