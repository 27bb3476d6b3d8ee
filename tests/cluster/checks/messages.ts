import type { Message } from "@parley/protocol";
import type { FinalChat, FinalState, Violation } from "../final-state.ts";
import { isOf, mayHaveHappened, type Operation } from "../history.ts";
import { possibleValues } from "./register.ts";

/** Everything that was sent as one message: the first time, and again. */
interface Sent {
  chat: string;
  sends: readonly Operation<"send">[];
  /** As those were told who were answered. */
  ids: readonly string[];
  /** What is there of it in the end. */
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

/** Every message that was acknowledged is there once, and none that nobody sent. */
export function checkMessages(history: readonly Operation[], { chats }: FinalState): Violation[] {
  const deletions = Map.groupBy(
    history.filter(isOf("delete")).filter(mayHaveHappened),
    ({ message }) => message,
  );
  const sent = sentMessages(history, chats);
  return [
    ...sent.flatMap((each) => checkSent(each, deletions)),
    ...strangers(chats, sent),
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
  if (ids.length > 1) return violation("sending again was answered with another message");
  if (found.length > 1) return violation("a message is there more than once");
  if (!message) {
    const isLost = ids.length > 0 && deleting.length === 0;
    return isLost ? violation("a message that was acknowledged is lost") : [];
  }
  if (!sends.some(mayHaveHappened)) return violation("a message is there though it was refused");
  if (deleting.some(({ outcome }) => outcome === "ok")) {
    return violation("a message is there though it was deleted");
  }
  const isOther = sends.some(
    ({ outcome, result }) =>
      outcome === "ok" && (result.id !== message.id || result.place !== message.seq),
  );
  return isOther ? violation("a message is not where it was said to be") : [];
}

function strangers(chats: readonly FinalChat[], sent: readonly Sent[]): Violation[] {
  const known = new Set(sent.flatMap(({ found }) => found.map(({ id }) => id)));
  return chats
    .flatMap(({ messages }) => messages)
    .filter(({ id, turn }) => turn === null && !known.has(id))
    .map(({ id }) => ({ what: `nobody has sent ${id}`, operations: [] }));
}

function checkSequence({ title, seq, messages }: FinalChat): Violation[] {
  const isWrong = (message: Message, place: number) =>
    message.seq <= (messages[place - 1]?.seq ?? 0) ||
    message.version < message.seq ||
    message.version > seq;
  return messages.filter(isWrong).map(({ id }) => ({
    what: `${id} is out of place in ${title}`,
    operations: [],
  }));
}

interface Placed {
  operation: Operation;
  /** The change took place between these moments. */
  invoked: number;
  completed: number;
  place: number;
}

/** What was acknowledged before something else began has the lower place in its conversation. */
export function checkOrder(history: readonly Operation[], { chats }: FinalState): Violation[] {
  const sends = sentMessages(history, chats).flatMap(placeOfSent);
  const edits = history.filter(isOf("edit")).flatMap(placeOf);
  const byChat = Map.groupBy([...sends, ...edits], ({ operation }) =>
    "chat" in operation ? operation.chat : "",
  );
  return [...byChat.values()].flatMap(checkOrderOf);
}

function placeOfSent({ sends, found }: Sent): Placed[] {
  const happened = sends.filter(mayHaveHappened);
  const [first] = happened;
  const place = happened.flatMap(placeOf)[0]?.place ?? found[0]?.seq;
  if (!first || place === undefined) return [];
  const invoked = Math.min(...happened.map((send) => send.invoked));
  const completed = Math.min(...happened.map((send) => send.completed));
  return [{ operation: first, invoked, completed, place }];
}

const placeOf = (operation: Operation): Placed[] => {
  const { invoked, completed, outcome, result } = operation;
  if (outcome !== "ok" || result.place === undefined) return [];
  return [{ operation, invoked, completed, place: result.place }];
};

function checkOrderOf(changes: readonly Placed[]): Violation[] {
  const done = changes.toSorted((one, other) => one.completed - other.completed);
  const begun = changes.toSorted((one, other) => one.invoked - other.invoked);
  let highest: Placed | undefined;
  let next = 0;
  return begun.flatMap((change) => {
    for (; (done[next]?.completed ?? Number.POSITIVE_INFINITY) < change.invoked; next++) {
      const earlier = done[next];
      if (earlier && earlier.place > (highest?.place ?? 0)) highest = earlier;
    }
    if (!highest || highest.place < change.place) return [];
    const what = `a change has place ${change.place} after one at ${highest.place} was done`;
    return [{ what, operations: [highest.operation, change.operation] }];
  });
}

/** A message says what it was last made to say. */
export function checkContents(history: readonly Operation[], { chats }: FinalState): Violation[] {
  const edits = Map.groupBy(history.filter(isOf("edit")), ({ message }) => message);
  return sentMessages(history, chats).flatMap(({ sends, found }) => {
    const [message] = found;
    const [send] = sends;
    if (!message || !send) return [];
    const mine = edits.get(message.id) ?? [];
    return isContent(message, send.content, mine)
      ? []
      : [{ what: "a message does not say what it should", operations: [send, ...mine] }];
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
  const place = ({ result }: Operation) => result.place ?? 0;
  const latest = made.toSorted((one, other) => place(other) - place(one))[0];
  if (latest && place(latest) > version) return false;
  // The counter knows which was the last, unless there are some that nobody was told of.
  const isCertain = edits.every(({ outcome }) => outcome !== "unknown");
  return !isCertain || content === (latest?.content ?? initial);
}
