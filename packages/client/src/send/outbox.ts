import type { Account, Message } from "@parley/protocol";
import { pause, retryDelayMs } from "../async/retry.ts";
import { isCallError, isTransient, isUnauthorized } from "../errors.ts";
import { asSent } from "../model/message.ts";
import type { Store } from "../model/store.ts";
import type { LocalMessage, Operations } from "../types.ts";
import { createClientMsgId, createUnsentMessage } from "./unsent-message.ts";

/** A message that causes an internal error this often is marked failed, so that others can follow. */
const MAX_INTERNAL_ERRORS = 5;

/** The error message for a repeated send whose message was deleted in the meantime. */
const MESSAGE_NOT_FOUND = "not found: message";

/** The sender until the caller's account is known. */
const UNKNOWN_SENDER: Account = { username: "", kind: "human", display_name: "", version: 0 };

/** Sends the caller's messages, those of a conversation one after another. */
export class Outbox {
  readonly #store: Store;
  readonly #api: Pick<Operations, "sendMessage">;
  readonly #canSend: () => boolean;
  /** Conversations whose messages are being sent. */
  readonly #busy = new Set<string>();
  /** Messages that the server cannot have yet. An attempt without a reply may have arrived. */
  readonly #neverSent = new Set<string>();

  constructor(store: Store, api: Pick<Operations, "sendMessage">, canSend: () => boolean) {
    this.#store = store;
    this.#api = api;
    this.#canSend = canSend;
  }

  /** Queues a message and returns its `client_msg_id`. */
  add(chatId: string, content: string, replyTo: string | undefined): string {
    const id = createClientMsgId();
    const sender = this.#store.state.me ?? UNKNOWN_SENDER;
    this.#neverSent.add(id);
    const message = createUnsentMessage({ id, chatId, content, replyTo, sender });
    this.#store.dispatch({ type: "queued", message });
    this.flush();
    return id;
  }

  /** Queues a failed message again. */
  retry(clientMsgId: string): void {
    const entry = this.#find(clientMsgId);
    if (entry?.delivery !== "failed") return;
    this.#store.dispatch({ type: "requeued", chatId: entry.conversation_id, clientMsgId });
    this.flush();
  }

  discard(clientMsgId: string): void {
    const entry = this.#find(clientMsgId);
    if (!entry) return;
    this.#store.dispatch({ type: "dropped", chatId: entry.conversation_id, clientMsgId });
  }

  /** Sends all queued messages, if the service can be reached. */
  flush(): void {
    if (!this.#canSend()) return;
    for (const chatId of Object.keys(this.#store.state.outbox)) void this.#sendAll(chatId);
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
    for (let entry = this.#nextOf(chatId); entry && this.#canSend(); entry = this.#nextOf(chatId)) {
      const error = await this.#send(entry).then(this.#handleAccepted, (thrown: unknown) => thrown);
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
    this.#busy.delete(chatId);
  }

  #send({ conversation_id, content, id, reply_to_id }: LocalMessage): Promise<Message> {
    return this.#api.sendMessage({
      chat_id: conversation_id,
      content,
      client_msg_id: id,
      ...(reply_to_id !== null && { reply_to_id }),
    });
  }

  readonly #handleAccepted = (message: Message): void => {
    const clientMsgId = message.client_msg_id ?? "";
    this.#neverSent.delete(clientMsgId);
    this.#store.dispatch({ type: "sent", clientMsgId, message: asSent(message) });
  };

  #handleRefused(entry: LocalMessage, error: unknown): void {
    const { conversation_id: chatId, id: clientMsgId, reply_to_id } = entry;
    // An earlier attempt had arrived, and the message was deleted since.
    const wasDeleted =
      !this.#neverSent.has(clientMsgId) &&
      reply_to_id === null &&
      isCallError(error) &&
      error.message === MESSAGE_NOT_FOUND;
    if (wasDeleted) this.#store.dispatch({ type: "dropped", chatId, clientMsgId });
    else this.#store.dispatch({ type: "failed", chatId, clientMsgId, failure: describe(error) });
    this.#neverSent.delete(clientMsgId);
  }
}

const isRefusal = (error: unknown, failures: number): boolean => {
  if (isUnauthorized(error)) return false;
  if (isCallError(error) && error.code === "internal") return failures >= MAX_INTERNAL_ERRORS;
  return !isTransient(error);
};

const describe = (error: unknown): string => {
  if (isCallError(error) && error.fields) {
    return Object.entries(error.fields)
      .map(([field, problem]) => `${field} ${problem}`)
      .join(", ");
  }
  return error instanceof Error ? error.message : String(error);
};
