import type { FinalChat, FinalState, Violation } from "../final-state.ts";
import { isOf, mayHaveHappened, type Operation } from "../history.ts";
import { possibleValues } from "./register.ts";

/** Conversations, who takes part in them, and how far they have read. */
export function checkChats(history: readonly Operation[], { chats }: FinalState): Violation[] {
  const starts = history.filter(isOf("start"));
  const known = new Set(starts.map(({ title }) => title));
  const strange = chats.filter(({ title }) => title === null || !known.has(title));
  return [
    ...strange.map(({ id }) => ({ what: `nobody has started ${id}`, operations: [] })),
    ...starts.flatMap((start) => checkStart(start, chats)),
    ...chats.flatMap((chat) => {
      const start = starts.find(({ title }) => title === chat.title);
      return start ? [...checkSeats(history, start, chat), ...checkReads(history, chat)] : [];
    }),
  ];
}

function checkStart(start: Operation<"start">, chats: readonly FinalChat[]): Violation[] {
  const { title, outcome, result } = start;
  const made = chats.filter((chat) => chat.title === title);
  const violation = (what: string) => [{ what: `${what}: ${title}`, operations: [start] }];
  if (made.length > 1) return violation("a conversation is there more than once");
  if (outcome === "fail" && made.length > 0) {
    return violation("a conversation is there though it was refused");
  }
  if (outcome === "ok" && made[0]?.id !== result.id) return violation("a conversation is lost");
  return [];
}

function checkSeats(
  history: readonly Operation[],
  start: Operation<"start">,
  chat: FinalChat,
): Violation[] {
  const seats = history.filter(isOf("seat")).filter((seat) => seat.chat === chat.id);
  const first = [start.client, ...start.usernames];
  const people = new Set([...first, ...seats.map(({ username }) => username), ...chat.members]);
  return [...people].flatMap((username) => {
    const operations = seats.filter((seat) => seat.username === username);
    const settings = operations.map((operation) => ({ operation, value: operation.on }));
    const isMember = chat.members.includes(username);
    if (possibleValues(first.includes(username), settings).has(isMember)) return [];
    const what = `${username} is ${isMember ? "still" : "no longer"} in ${chat.title}`;
    return [{ what, operations }];
  });
}

/** A place that one has read to never moves back, for as long as one takes part. */
function checkReads(history: readonly Operation[], chat: FinalChat): Violation[] {
  const isHere = (operation: Operation) => "chat" in operation && operation.chat === chat.id;
  const here = history.filter(isHere);
  const removed = new Set(
    here
      .filter(isOf("seat"))
      .filter((seat) => !seat.on && mayHaveHappened(seat))
      .map(({ username }) => username),
  );
  return Object.entries(chat.reads).flatMap(([username, read]) => {
    if (removed.has(username)) return [];
    const mine = here.filter(({ client, outcome }) => client === username && outcome === "ok");
    const beyond = mine.filter((operation) => placeRead(operation) > read);
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
const placeRead = (operation: Operation): number => {
  if (operation.kind === "read") return operation.seq;
  return operation.kind === "send" ? (operation.result.place ?? 0) : 0;
};
