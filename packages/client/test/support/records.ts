import type {
  Account,
  Conversation,
  ConversationChange,
  EventFrame,
  EventName,
  Message,
} from "@parley/protocol";
import type { Action } from "../../src/model/actions.ts";
import { reduce } from "../../src/model/reducer.ts";
import { initialState, type State } from "../../src/model/state.ts";
import type { LocalMessage } from "../../src/types.ts";

export const ann: Account = { username: "ann", kind: "human", display_name: "Ann", version: 0 };
export const bob: Account = { username: "bob", kind: "human", display_name: "Bob", version: 0 };
export const claude: Account = {
  username: "ann:claude",
  kind: "agent",
  display_name: "Claude",
  version: 0,
};

const AT = "2026-11-15T02:10:00.000Z";
export const CHAT = "c1";

export function aMessage(given: Partial<Message> = {}): Message {
  const seq = given.seq ?? 1;
  return {
    id: `m${seq}`,
    conversation_id: CHAT,
    seq,
    version: seq,
    sender: bob,
    content: `message ${seq}`,
    client_msg_id: null,
    reply_to_id: null,
    created_at: AT,
    edited_at: null,
    finalized_at: AT,
    reactions: [],
    mentions: [],
    turn: null,
    action: null,
    uses: [],
    tool_calls: [],
    files: [],
    ...given,
  };
}

export function aChat(given: Partial<Conversation> = {}): Conversation {
  return {
    id: CHAT,
    kind: "group",
    title: null,
    participants: [ann, bob],
    created_by: ann,
    admin: "ann",
    created_at: AT,
    updated_at: AT,
    seq: 0,
    last_message: null,
    participant_count: given.participants?.length ?? 2,
    picture_id: null,
    unread_count: 0,
    unread: { human: 0, agent: 0, mentions: 0 },
    last_read_seq: 0,
    own_seq: 0,
    ...given,
  };
}

export const aChange = (seq: number, title = `title ${seq}`): ConversationChange => ({
  seq,
  at: AT,
  actor: bob,
  kind: "renamed",
  subjects: [],
  subject_count: 0,
  title,
  always_on: null,
});

export const run = (state: State, ...actions: Action[]): State => actions.reduce(reduce, state);

/** An event of the conversation, with `at` if `seq` is given. */
export function anEvent<Name extends EventName>(
  method: Name,
  params: EventFrame<Name>["params"],
  seq?: number,
): Extract<Action, { type: "event" }> {
  const at = seq === undefined ? undefined : { conversation_id: CHAT, seq };
  return { type: "event", frame: { method, params, ...(at && { at }) } as EventFrame };
}

/** Ann's state with one opened conversation and a number of read messages of Bob. */
export function annsState(messages = 0): State {
  const items = Array.from({ length: messages }, (_, place) => aMessage({ seq: place + 1 }));
  const snapshot = aChat({
    seq: messages,
    last_read_seq: messages,
    last_message: items.at(-1) ?? null,
  });
  return run(
    initialState("online"),
    { type: "me", me: ann },
    { type: "snapshots", snapshots: [snapshot] },
    { type: "messagePage", chatId: CHAT, page: { items, has_more: false }, since: messages },
  );
}

export const chatOf = (state: State) => {
  const chat = state.chats[CHAT];
  if (!chat) throw new Error("the conversation is not there");
  return chat;
};
export const items = (state: State): readonly LocalMessage[] => chatOf(state).window?.items ?? [];
export const ids = (state: State) => items(state).map(({ id }) => id);

/** A page of changes from `getUpdates`. */
export const updates = (seq: number, messages = [aMessage()], deleted_ids: string[] = []) => ({
  type: "updates" as const,
  chatId: CHAT,
  since: 0,
  page: {
    messages,
    deleted_ids,
    changes: [] as ConversationChange[],
    conversation: aChat({ seq, last_message: messages.at(-1) ?? null }),
    seq,
    has_more: false,
    reads: {},
  },
});
