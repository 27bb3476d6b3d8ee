import type { Account, ErrorCode, Message } from "@parley/protocol";
import { pause, retryDelayMs } from "../async/retry.ts";
import { describeError, isCallError, isUnauthorized, mayRetry, refusalOf } from "../errors.ts";
import { asSent } from "../model/message.ts";
import type { Store } from "../model/store.ts";
import type { CallError, LocalMessage, Operations, SendOptions } from "../types.ts";
import type { Attachments } from "./attachments.ts";
import { createClientMsgId, createUnsentMessage } from "./unsent-message.ts";

/** A message that causes an internal error this often is marked failed, so that others can follow. */
const MAX_INTERNAL_ERRORS = 5;

/** The sender until the caller's account is known. */
const UNKNOWN_SENDER: Account = { username: "", kind: "human", display_name: "", version: 0 };

export interface OutboxOptions {
  store: Store;
  api: Pick<Operations, "sendMessage">;
  attachments: Attachments;
  canSend(): boolean;
}

/** Sends the caller's messages, those of a conversation one after another. */
export class Outbox {
  readonly #store: Store;
  readonly #api: Pick<Operations, "sendMessage">;
  readonly #attachments: Attachments;
  readonly #canSend: () => boolean;
  /** Conversations whose messages are being sent. */
  readonly #busy = new Set<string>();
  /** Messages that the server cannot have yet. An attempt without a reply may have arrived. */
  readonly #neverSent = new Set<string>();
  /** Messages whose files are uploaded a second time, because the service no longer had them. */
  readonly #uploadedAgain = new Set<string>();

  constructor(options: OutboxOptions) {
    this.#store = options.store;
    this.#api = options.api;
    this.#attachments = options.attachments;
    this.#canSend = options.canSend;
  }

  /** Queues a message and returns its `client_msg_id`. */
  add(chatId: string, content: string, { replyTo, files: blobs = [] }: SendOptions): string {
    const id = createClientMsgId();
    const files = blobs.length > 0 ? this.#attachments.add(id, chatId, blobs) : [];
    const sender = this.#store.state.me ?? UNKNOWN_SENDER;
    this.#neverSent.add(id);
    const message = createUnsentMessage({ id, chatId, content, replyTo, sender, files });
    this.#store.dispatch({ type: "queued", message });
    this.flush();
    return id;
  }

  /** Queues a failed message again. */
  retry(clientMsgId: string): void {
    const entry = this.#find(clientMsgId);
    if (entry?.delivery !== "failed") return;
    this.#uploadedAgain.delete(clientMsgId);
    this.#store.dispatch({ type: "requeued", chatId: entry.conversation_id, clientMsgId });
    this.flush();
  }

  discard(clientMsgId: string): void {
    const entry = this.#find(clientMsgId);
    if (!entry) return;
    if (entry.delivery !== "sent") this.#attachments.discard(entry);
    this.#store.dispatch({ type: "dropped", chatId: entry.conversation_id, clientMsgId });
  }

  /** Sends all queued messages, if the service can be reached. */
  flush(): void {
    if (!this.#canSend()) return;
    this.#startUploads();
    for (const chatId of Object.keys(this.#store.state.outbox)) void this.#sendAll(chatId);
  }

  /** Uploads the files of all queued messages, also of those that wait for others to be sent. */
  #startUploads(): void {
    for (const entry of Object.values(this.#store.state.outbox).flat()) {
      if (entry.delivery !== "sending" || entry.files.length === 0) continue;
      this.#attachments.upload(entry).catch((error: unknown) => {
        if (isRefusal(error, 0)) this.#handleRefused(entry, error);
      });
    }
  }

  #find(id: string): LocalMessage | undefined {
    const entries = Object.values(this.#store.state.outbox).flat();
    return entries.find(({ client_msg_id }) => client_msg_id === id);
  }

  #nextOf(chatId: string): LocalMessage | undefined {
    return this.#store.state.outbox[chatId]?.find(({ delivery }) => delivery === "sending");
  }

  async #sendAll(chatId: string): Promise<void> {
    if (this.#busy.has(chatId)) return;
    this.#busy.add(chatId);
    let failures = 0;
    try {
      while (this.#canSend()) {
        const entry = this.#nextOf(chatId);
        if (!entry) break;
        const error = await this.#send(entry).then(
          this.#handleAccepted,
          (thrown: unknown) => thrown,
        );
        if (error === undefined) {
          failures = 0;
        } else if (isRefusal(error, failures)) {
          this.#handleRefused(entry, error);
          failures = 0;
        } else {
          this.#neverSent.delete(entry.id);
          await pause(this.#canSend() ? retryDelayMs(failures++, error) : 0);
        }
      }
    } finally {
      // In the same microtask in which nothing more was found to send.
      this.#busy.delete(chatId);
    }
  }

  async #send(entry: LocalMessage): Promise<Message> {
    const { conversation_id, content, id, reply_to_id } = entry;
    const file_ids = entry.files.length > 0 ? await this.#attachments.upload(entry) : [];
    return this.#api.sendMessage({
      chat_id: conversation_id,
      content,
      client_msg_id: id,
      ...(reply_to_id !== null && { reply_to_id }),
      ...(file_ids.length > 0 && { file_ids }),
    });
  }

  readonly #handleAccepted = (message: Message): void => {
    const clientMsgId = message.client_msg_id ?? "";
    this.#neverSent.delete(clientMsgId);
    const entry = this.#find(clientMsgId);
    if (entry?.delivery === "sending") this.#attachments.cancelUnused(entry, message);
    this.#store.dispatch({ type: "sent", clientMsgId, message: asSent(message) });
  };

  #handleRefused(entry: LocalMessage, error: unknown): void {
    const { conversation_id: chatId, id: clientMsgId } = entry;
    if (this.#lacksFiles(entry, error)) return;
    // An earlier attempt had arrived, and the message was deleted since.
    const wasDeleted =
      !this.#neverSent.has(clientMsgId) && isMissing(error) && concerns(error, "client_msg_id");
    if (wasDeleted) this.#store.dispatch({ type: "dropped", chatId, clientMsgId });
    else {
      const reason = { failure: describeError(error), refusal: refusalOf(error) };
      const isRejected = isFinal(error);
      this.#store.dispatch({ type: "failed", chatId, clientMsgId, ...reason, isRejected });
    }
    this.#neverSent.delete(clientMsgId);
  }

  /**
   * Whether the service refused a message because it no longer has an upload: it deletes those that
   * no message uses for a day. The files are then uploaded again, once.
   */
  #lacksFiles({ id }: LocalMessage, error: unknown): boolean {
    const entry = this.#find(id);
    const lacksFiles = isMissing(error) && concerns(error, "file_ids");
    if (!entry || !lacksFiles || this.#uploadedAgain.has(id)) return false;
    this.#uploadedAgain.add(id);
    this.#attachments.forgetUploads(entry);
    return true;
  }
}

const isMissing = (error: unknown): error is CallError =>
  isCallError(error) && ["not_found", "conflict"].includes(error.code);

/** Whether the service refused a field of the call, or an item of it. */
const concerns = ({ fields = {} }: CallError, field: string) =>
  Object.keys(fields).some((path) => path.split(".")[0] === field);

/** The codes with which the service refuses a file for good, or for the rest of the day. */
const FINAL_CODES: readonly ErrorCode[] = [
  "bad_request",
  "payload_too_large",
  "unsupported_media_type",
  "rate_limited",
];

/** Whether the files of a message are refused for good. What the service said about one is the cause. */
const isFinal = (error: unknown): boolean => {
  if (isCallError(error) || !(error instanceof Error)) return false;
  return !isCallError(error.cause) || FINAL_CODES.includes(error.cause.code);
};

const isRefusal = (error: unknown, failures: number): boolean => {
  if (isUnauthorized(error)) return false;
  if (isCallError(error) && error.code === "internal") return failures >= MAX_INTERNAL_ERRORS;
  return !mayRetry(error);
};
