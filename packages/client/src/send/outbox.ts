import type { Account, Message } from "@parley/protocol";
import { pause, pauseBefore } from "../async/retry.ts";
import { isCallError, isTransient, isUnauthorized } from "../errors.ts";
import { asSent } from "../model/message.ts";
import type { Store } from "../model/store.ts";
import type { LocalMessage, Operations } from "../types.ts";

/** An error inside the service may pass. One that does not must not hold up the rest for ever. */
const INTERNAL_TRIES = 5;

/** What the service says of an earlier send whose message is no longer there. */
const NO_MESSAGE = "not found: message";

export interface Outbox {
  /** Puts a message in line and returns its `client_msg_id`. */
  add(chatId: string, content: string, replyTo: string | undefined): string;
  retry(clientMsgId: string): void;
  discard(clientMsgId: string): void;
  /** Sends whatever waits, if it can be sent. */
  flush(): void;
}

const UNKNOWN: Account = { username: "", kind: "human", display_name: "", version: 0 };

/** Sends what was written: per conversation one after another, each until the service has answered. */
export function outbox(
  store: Store,
  api: Pick<Operations, "sendMessage">,
  canSend: () => boolean,
): Outbox {
  const working = new Set<string>();
  /** Never left so far; the service may have any other, though no answer came. */
  const unheard = new Set<string>();

  const entries = () => Object.values(store.state.outbox).flat();
  const find = (id: string) => entries().find(({ client_msg_id }) => client_msg_id === id);
  const next = (chatId: string) =>
    store.state.outbox[chatId]?.find(({ delivery }) => delivery === "sending");

  async function work(chatId: string): Promise<void> {
    if (working.has(chatId)) return;
    working.add(chatId);
    let tries = 0;
    for (let entry = next(chatId); entry && canSend(); entry = next(chatId)) {
      const error = await attempt(entry).then(accepted, (thrown: unknown) => thrown);
      if (error === undefined) {
        tries = 0;
      } else if (isRefusal(error, tries)) {
        refused(entry, error);
        tries = 0;
      } else {
        unheard.delete(entry.id);
        await pause(canSend() ? pauseBefore(tries++, error) : 0);
      }
    }
    working.delete(chatId);
  }

  const attempt = ({ conversation_id, content, id, reply_to_id }: LocalMessage) =>
    api.sendMessage({
      chat_id: conversation_id,
      content,
      client_msg_id: id,
      ...(reply_to_id !== null && { reply_to_id }),
    });

  function accepted(message: Message): void {
    const clientMsgId = message.client_msg_id ?? "";
    unheard.delete(clientMsgId);
    store.dispatch({ type: "sent", clientMsgId, message: asSent(message) });
  }

  function refused({ conversation_id: chatId, id, reply_to_id }: LocalMessage, error: unknown) {
    const wasDeleted =
      !unheard.has(id) &&
      reply_to_id === null &&
      isCallError(error) &&
      error.message === NO_MESSAGE;
    // It had arrived the first time, and somebody has deleted it since.
    if (wasDeleted) store.dispatch({ type: "dropped", chatId, clientMsgId: id });
    else store.dispatch({ type: "failed", chatId, clientMsgId: id, failure: inWords(error) });
    unheard.delete(id);
  }

  function flush(): void {
    if (canSend()) for (const chatId of Object.keys(store.state.outbox)) void work(chatId);
  }

  return {
    add(chatId, content, replyTo) {
      const id = newId();
      unheard.add(id);
      store.dispatch({
        type: "queued",
        message: unsent({ id, chatId, content, replyTo, sender: store.state.me ?? UNKNOWN }),
      });
      flush();
      return id;
    },
    retry(id) {
      const entry = find(id);
      if (entry?.delivery !== "failed") return;
      store.dispatch({ type: "requeued", chatId: entry.conversation_id, clientMsgId: id });
      flush();
    },
    discard(id) {
      const entry = find(id);
      if (!entry) return;
      store.dispatch({ type: "dropped", chatId: entry.conversation_id, clientMsgId: id });
    },
    flush,
  };
}

const isRefusal = (error: unknown, tries: number): boolean => {
  if (isUnauthorized(error)) return false;
  if (isCallError(error) && error.code === "internal") return tries >= INTERNAL_TRIES;
  return !isTransient(error);
};

const inWords = (error: unknown): string => {
  if (isCallError(error) && error.fields) {
    return Object.entries(error.fields)
      .map(([field, what]) => `${field} ${what}`)
      .join(", ");
  }
  return error instanceof Error ? error.message : String(error);
};

/** A random UUID; pages that were not served over TLS have no `randomUUID`. */
function newId(): string {
  if (crypto.randomUUID) return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

interface Written {
  id: string;
  chatId: string;
  content: string;
  replyTo: string | undefined;
  sender: Account;
  at?: string;
  failure?: string | undefined;
}

/** A message as it is shown before the service has it. */
export function unsent(written: Written): LocalMessage {
  const { id, chatId, content, replyTo, sender, at = new Date().toISOString(), failure } = written;
  return {
    id,
    conversation_id: chatId,
    seq: 0,
    version: 0,
    sender,
    content,
    client_msg_id: id,
    reply_to_id: replyTo ?? null,
    created_at: at,
    edited_at: null,
    finalized_at: at,
    reactions: [],
    mentions: [],
    turn: null,
    action: null,
    uses: [],
    delivery: failure === undefined ? "sending" : "failed",
    ...(failure !== undefined && { failure }),
  };
}
