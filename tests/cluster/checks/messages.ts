import type { Message } from "@parley/protocol";
import type { FinalChat, FinalState, Violation } from "../final-state.ts";
import { isOf, mayHaveHappened, type Operation } from "../history.ts";
import { possibleValues } from "./register.ts";

/** All attempts to send one message, with the stored result. */
interface Sent {
  chat: string;
  sends: readonly Operation<"send">[];
  /** The ids that the acknowledgements named. */
  ids: readonly string[];
  /** The messages in the final state that have its key. */
  found: readonly Message[];
}

function sentMessages(history: readonly Operation[], chats: readonly FinalChat[]): Sent[] {
  const byKey = (chat: string, sender: string, key: string | null) => `${chat} ${sender} ${key}`;
  const all = chats.flatMap(({ messages }) => messages);
  const found = Map.groupBy(all, ({ conversation_id, sender, client_msg_id }) =>
    byKey(conversation_id, sender.username, client_msg_id),
  );
  const sends = Map.groupBy(history.filter(isOf("send")), ({ chat, client, key }) =>
    byKey(chat, client, key),
  );
  return [...sends].map(([key, group]) => ({
    chat: group[0]?.chat ?? "",
    sends: group,
    ids: [...new Set(group.flatMap(({ result }) => result.id ?? []))],
    found: found.get(key) ?? [],
  }));
}

/** Every acknowledged message exists exactly once, and no message exists that nobody sent. */
export function checkMessages(history: readonly Operation[], { chats }: FinalState): Violation[] {
  const deletions = Map.groupBy(
    history.filter(isOf("delete")).filter(mayHaveHappened),
    ({ message }) => message,
  );
  const sent = sentMessages(history, chats);
  return [
    ...sent.flatMap((each) => checkSent(each, deletions)),
    ...unknownMessages(chats, sent),
    ...chats.flatMap(checkSequence),
  ];
}

function checkSent(
  { sends, ids, found }: Sent,
  deletions: ReadonlyMap<string, readonly Operation[]>,
): Violation[] {
  const deleting = ids.flatMap((id) => deletions.get(id) ?? []);
  const violation = (what: string) => [{ what, operations: [...sends, ...deleting] }];
  const [message] = found;
  if (ids.length > 1) return violation("resending returned another message");
  if (found.length > 1) return violation("a message exists more than once");
  if (!message) {
    const isLost = ids.length > 0 && deleting.length === 0;
    return isLost ? violation("an acknowledged message is missing") : [];
  }
  if (!sends.some(mayHaveHappened)) return violation("a refused message exists");
  if (deleting.some(({ outcome }) => outcome === "ok")) {
    return violation("a deleted message exists");
  }
  const isOther = sends.some(
    ({ outcome, result }) =>
      outcome === "ok" && (result.id !== message.id || result.seq !== message.seq),
  );
  return isOther ? violation("a message differs from its acknowledgement") : [];
}

function unknownMessages(chats: readonly FinalChat[], sent: readonly Sent[]): Violation[] {
  const known = new Set(sent.flatMap(({ found }) => found.map(({ id }) => id)));
  return chats
    .flatMap(({ messages }) => messages)
    .filter(({ id, turn }) => turn === null && !known.has(id))
    .map(({ id }) => ({ what: `nobody sent ${id}`, operations: [] }));
}

function checkSequence({ title, seq, messages }: FinalChat): Violation[] {
  const isWrong = (message: Message, index: number) =>
    message.seq <= (messages[index - 1]?.seq ?? 0) ||
    message.version < message.seq ||
    message.version > seq;
  return messages.filter(isWrong).map(({ id }) => ({
    what: `${id} is out of order in ${title}`,
    operations: [],
  }));
}

interface OrderedChange {
  operation: Operation;
  /** The change happened between these times. */
  invoked: number;
  completed: number;
  seq: number;
}

/** A change that was acknowledged before another one began has the lower seq. */
export function checkOrder(history: readonly Operation[], { chats }: FinalState): Violation[] {
  const sends = sentMessages(history, chats).flatMap(orderedSend);
  const edits = history.filter(isOf("edit")).flatMap(orderedChange);
  const byChat = Map.groupBy([...sends, ...edits], ({ operation }) =>
    "chat" in operation ? operation.chat : "",
  );
  return [...byChat.values()].flatMap(checkOrderOf);
}

function orderedSend({ sends, found }: Sent): OrderedChange[] {
  const happened = sends.filter(mayHaveHappened);
  const [first] = happened;
  const seq = happened.flatMap(orderedChange)[0]?.seq ?? found[0]?.seq;
  if (!first || seq === undefined) return [];
  const invoked = Math.min(...happened.map((send) => send.invoked));
  const completed = Math.min(...happened.map((send) => send.completed));
  return [{ operation: first, invoked, completed, seq }];
}

const orderedChange = (operation: Operation): OrderedChange[] => {
  const { invoked, completed, outcome, result } = operation;
  if (outcome !== "ok" || result.seq === undefined) return [];
  return [{ operation, invoked, completed, seq: result.seq }];
};

function checkOrderOf(changes: readonly OrderedChange[]): Violation[] {
  const done = changes.toSorted((one, other) => one.completed - other.completed);
  const begun = changes.toSorted((one, other) => one.invoked - other.invoked);
  let highest: OrderedChange | undefined;
  let next = 0;
  return begun.flatMap((change) => {
    for (; (done[next]?.completed ?? Number.POSITIVE_INFINITY) < change.invoked; next++) {
      const earlier = done[next];
      if (earlier && earlier.seq > (highest?.seq ?? 0)) highest = earlier;
    }
    if (!highest || highest.seq < change.seq) return [];
    const what = `a change has seq ${change.seq}, but began after seq ${highest.seq} was acknowledged`;
    return [{ what, operations: [highest.operation, change.operation] }];
  });
}

/** The content of every message is that of its last edit. */
export function checkContents(history: readonly Operation[], { chats }: FinalState): Violation[] {
  const edits = Map.groupBy(history.filter(isOf("edit")), ({ message }) => message);
  return sentMessages(history, chats).flatMap(({ sends, found }) => {
    const [message] = found;
    const [send] = sends;
    if (!message || !send) return [];
    const mine = edits.get(message.id) ?? [];
    return isContent(message, send.content, mine)
      ? []
      : [{ what: "a message has the wrong content", operations: [send, ...mine] }];
  });
}

function isContent(
  { content, version }: Message,
  initial: string,
  edits: readonly Operation<"edit">[],
): boolean {
  const settings = edits.map((operation) => ({ operation, value: operation.content }));
  if (!possibleValues(initial, settings).has(content)) return false;
  const made = edits.filter(({ outcome }) => outcome === "ok");
  const seq = ({ result }: Operation) => result.seq ?? 0;
  const latest = made.toSorted((one, other) => seq(other) - seq(one))[0];
  if (latest && seq(latest) > version) return false;
  // The counter orders acknowledged edits. Those with unknown outcome have no known seq.
  const isCertain = edits.every(({ outcome }) => outcome !== "unknown");
  return !isCertain || content === (latest?.content ?? initial);
}
