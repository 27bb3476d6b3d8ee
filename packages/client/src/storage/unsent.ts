import type { Account } from "@parley/protocol";
import type { State } from "../model/state.ts";
import type { Store } from "../model/store.ts";
import { unsent } from "../send/outbox.ts";
import type { KeyValueStorage, LocalMessage } from "../types.ts";

interface Kept {
  id: string;
  chat_id: string;
  content: string;
  reply_to_id: string | null;
  created_at: string;
  failure?: string;
}

export interface Keeper {
  /** Brings back what the account left unsent and unfinished, and keeps it from now on. */
  open(me: Account): void;
  /** Keeps nothing any more, and leaves what is kept. */
  close(): void;
  /** Throws away what is kept of the account. */
  clear(): void;
}

/** Keeps unsent messages and drafts in a storage, which tabs may share. */
export function keeper(store: Store, storage: KeyValueStorage | undefined): Keeper {
  let me: Account | null = null;
  const key = (what: "outbox" | "drafts") => `parley:${what}:${me?.username ?? ""}`;

  function read<Value>(what: "outbox" | "drafts", otherwise: Value): Value {
    try {
      return JSON.parse(storage?.getItem(key(what)) ?? "null") ?? otherwise;
    } catch {
      return otherwise;
    }
  }

  function write(what: "outbox" | "drafts", value: object): void {
    try {
      if (Object.keys(value).length === 0) storage?.removeItem(key(what));
      else storage?.setItem(key(what), JSON.stringify(value));
    } catch {
      // A full or forbidden storage costs the memory of a reload, nothing else.
    }
  }

  store.onChange((state, before) => {
    if (!me || !storage) return;
    if (state.outbox !== before.outbox) {
      const now = waiting(state);
      const gone = new Set(waiting(before).map(({ id }) => id));
      for (const { id } of now) gone.add(id);
      // Another tab's entries stay: only what was ours is replaced.
      const others = read<Kept[]>("outbox", []).filter(({ id }) => !gone.has(id));
      write("outbox", [...others, ...now.map(asKept)]);
    }
    if (state.drafts !== before.drafts) {
      write("drafts", { ...read<State["drafts"]>("drafts", {}), ...changed(state, before) });
    }
  });

  return {
    open(account) {
      if (me?.username === account.username) return;
      me = account;
      const here = new Set(waiting(store.state).map(({ id }) => id));
      for (const kept of read<Kept[]>("outbox", [])) {
        if (here.has(kept.id)) continue;
        store.dispatch({ type: "queued", message: asUnsent(kept, account) });
      }
      const drafts = { ...read<State["drafts"]>("drafts", {}), ...store.state.drafts };
      store.dispatch({ type: "drafts", drafts });
    },
    close() {
      me = null;
    },
    clear() {
      storage?.removeItem(key("outbox"));
      storage?.removeItem(key("drafts"));
      me = null;
    },
  };
}

const waiting = ({ outbox }: State): LocalMessage[] =>
  Object.values(outbox)
    .flat()
    .filter(({ delivery }) => delivery !== "sent");

const asKept = (message: LocalMessage): Kept => ({
  id: message.id,
  chat_id: message.conversation_id,
  content: message.content,
  reply_to_id: message.reply_to_id,
  created_at: message.created_at,
  ...(message.failure !== undefined && { failure: message.failure }),
});

const asUnsent = (kept: Kept, sender: Account): LocalMessage =>
  unsent({
    id: kept.id,
    chatId: kept.chat_id,
    content: kept.content,
    replyTo: kept.reply_to_id ?? undefined,
    sender,
    at: kept.created_at,
    failure: kept.failure,
  });

/** The drafts that differ; an emptied one is kept as undefined, which JSON leaves out. */
function changed(state: State, before: State): Record<string, string | undefined> {
  const ids = new Set([...Object.keys(state.drafts), ...Object.keys(before.drafts)]);
  const differing = [...ids].filter((id) => state.drafts[id] !== before.drafts[id]);
  return Object.fromEntries(differing.map((id) => [id, state.drafts[id]]));
}
