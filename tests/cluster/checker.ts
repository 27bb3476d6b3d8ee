import { checkChats } from "./checks/chats.ts";
import { checkContents, checkMessages, checkOrder } from "./checks/messages.ts";
import { checkReactions } from "./checks/reactions.ts";
import { checkTurns, checkUsage } from "./checks/turns.ts";
import type { FinalState, Violation } from "./final-state.ts";
import { describe, type Operation } from "./history.ts";

type Rule = (history: readonly Operation[], state: FinalState) => Violation[];

const rules: readonly Rule[] = [
  checkChats,
  checkMessages,
  checkOrder,
  checkContents,
  checkReactions,
  checkTurns,
  checkUsage,
];

/**
 * Whether what clients were told fits what is there in the end: whatever was acknowledged is there,
 * once and in order, what was refused has left nothing, and what is unknown has happened once or
 * not at all.
 */
export const check: Rule = (history, state) => rules.flatMap((rule) => rule(history, state));

const NEIGHBOURS = 4;

/** A violation with the operations it is about, and those of the same conversation around them. */
export function explain({ what, operations }: Violation, history: readonly Operation[]): string {
  const places = new Set<number>();
  for (const operation of operations) {
    const chat = chatOf(operation);
    const near = history.filter((other) => chatOf(other) === chat);
    const at = near.indexOf(operation);
    for (const other of near.slice(Math.max(0, at - NEIGHBOURS), at + NEIGHBOURS + 1)) {
      places.add(other.index);
    }
  }
  const blamed = new Set(operations.map(({ index }) => index));
  const lines = [...places]
    .toSorted((one, other) => one - other)
    .flatMap((place) => history[place] ?? [])
    .map((operation) => `${blamed.has(operation.index) ? "  >" : "   "} ${describe(operation)}`);
  return [what, ...lines].join("\n");
}

const chatOf = (operation: Operation) => ("chat" in operation ? operation.chat : operation.title);
