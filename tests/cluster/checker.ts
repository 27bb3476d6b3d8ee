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
 * Compares the history with the final state: every acknowledged operation took effect once and in
 * order, no refused one did, and one with unknown outcome did at most once.
 */
export const check: Rule = (history, state) => rules.flatMap((rule) => rule(history, state));

const NEIGHBOURS = 4;

/** Describes a violation with its operations and their neighbours in the same conversation. */
export function explain({ what, operations }: Violation, history: readonly Operation[]): string {
  const indexes = new Set<number>();
  for (const operation of operations) {
    const chat = chatOf(operation);
    const near = history.filter((other) => chatOf(other) === chat);
    const at = near.indexOf(operation);
    for (const other of near.slice(Math.max(0, at - NEIGHBOURS), at + NEIGHBOURS + 1)) {
      indexes.add(other.index);
    }
  }
  const involved = new Set(operations.map(({ index }) => index));
  const lines = [...indexes]
    .toSorted((one, other) => one - other)
    .flatMap((index) => history[index] ?? [])
    .map((operation) => `${involved.has(operation.index) ? "  >" : "   "} ${describe(operation)}`);
  return [what, ...lines].join("\n");
}

const chatOf = (operation: Operation) => ("chat" in operation ? operation.chat : operation.title);
