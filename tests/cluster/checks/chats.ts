import type { FinalChat, FinalState, Violation } from "../final-state.ts";
import { isOf, mayHaveHappened, type Operation } from "../history.ts";
import { possibleValues } from "./register.ts";

/** Every started conversation exists once, with the members that were last set and the reads that were acknowledged. */
export function checkChats(history: readonly Operation[], { chats }: FinalState): Violation[] {
  const starts = history.filter(isOf("start"));
  const known = new Set(starts.map(({ title }) => title));
  const unknown = chats.filter(({ title }) => title === null || !known.has(title));
  return [
    ...unknown.map(({ id }) => ({ what: `nobody started ${id}`, operations: [] })),
    ...starts.flatMap((start) => checkStart(start, chats)),
    ...chats.flatMap((chat) => {
      const start = starts.find(({ title }) => title === chat.title);
      return start ? [...checkMembers(history, start, chat), ...checkReads(history, chat)] : [];
    }),
  ];
}

function checkStart(start: Operation<"start">, chats: readonly FinalChat[]): Violation[] {
  const { title, outcome, result } = start;
  const made = chats.filter((chat) => chat.title === title);
  const violation = (what: string) => [{ what: `${what}: ${title}`, operations: [start] }];
  if (made.length > 1) return violation("a conversation exists more than once");
  if (outcome === "fail" && made.length > 0) {
    return violation("a refused conversation exists");
  }
  if (outcome === "ok" && made[0]?.id !== result.id)
    return violation("an acknowledged conversation is missing");
  return [];
}

function checkMembers(
  history: readonly Operation[],
  start: Operation<"start">,
  chat: FinalChat,
): Violation[] {
  const changes = history.filter(isOf("membership")).filter((change) => change.chat === chat.id);
  const first = [start.client, ...start.usernames];
  const people = new Set([...first, ...changes.map(({ username }) => username), ...chat.members]);
  return [...people].flatMap((username) => {
    const operations = changes.filter((change) => change.username === username);
    const settings = operations.map((operation) => ({ operation, value: operation.on }));
    const isMember = chat.members.includes(username);
    if (possibleValues(first.includes(username), settings).has(isMember)) return [];
    const what = `${username} is ${isMember ? "still" : "no longer"} in ${chat.title}`;
    return [{ what, operations }];
  });
}

/** The read position of a member never moves back. */
function checkReads(history: readonly Operation[], chat: FinalChat): Violation[] {
  const isHere = (operation: Operation) => "chat" in operation && operation.chat === chat.id;
  const here = history.filter(isHere);
  const removed = new Set(
    here
      .filter(isOf("membership"))
      .filter((change) => !change.on && mayHaveHappened(change))
      .map(({ username }) => username),
  );
  return Object.entries(chat.reads).flatMap(([username, read]) => {
    if (removed.has(username)) return [];
    const mine = here.filter(({ client, outcome }) => client === username && outcome === "ok");
    const beyond = mine.filter((operation) => seqRead(operation) > read);
    const violations = beyond.map((operation) => ({
      what: `${username} has read ${chat.title} up to ${read} only`,
      operations: [operation],
    }));
    if (read <= chat.seq) return violations;
    const what = `${username} has read ${chat.title} beyond its end, ${chat.seq}`;
    return [...violations, { what, operations: [] }];
  });
}

/** Sending a message reads the conversation up to it. */
const seqRead = (operation: Operation): number => {
  if (operation.kind === "read") return operation.seq;
  return operation.kind === "send" ? (operation.result.seq ?? 0) : 0;
};
