import type { Account } from "@parley/protocol";
import { deceptiveNames } from "@parley/protocol/names";
import { useCallback } from "react";
import { nameOf, ownerOf } from "../lib/names.ts";
import { useChatContext } from "./context.ts";

/**
 * People whose name alone could be taken for somebody else's, a person's or an agent's. Agents are
 * not among them: the chip with their owner tells them apart.
 */
export function confusablePeople(participants: readonly Account[]): ReadonlySet<string> {
  const named = participants.map((each) => ({ ...each, display_name: nameOf(each) }));
  const people = participants.filter(({ kind }) => kind === "human");
  const confused = deceptiveNames(named);
  return new Set(people.map(({ username }) => username).filter((name) => confused.has(name)));
}

/** Whether somebody's @username has to stand beside their name: also for people who have left. */
export function useNeedsHandle(): (account: Account) => boolean {
  const { chat, confusable: confused } = useChatContext();
  const { participants, participant_count } = chat;
  return useCallback(
    ({ kind, username }: Account) => {
      if (kind === "agent") return false;
      // Of a large group not all are known at first.
      const isWhole = participants.length === participant_count;
      const isHere = !isWhole || participants.some((each) => each.username === username);
      return confused.has(username) || !isHere;
    },
    [participants, participant_count, confused],
  );
}

/** Whose words these are, as text: for screen readers and for lines without room for chips. */
export function useSenderName(): (account: Account) => string {
  const needsHandle = useNeedsHandle();
  return useCallback(
    (account: Account) => {
      if (account.kind === "agent") return `${nameOf(account)} of @${ownerOf(account.username)}`;
      return needsHandle(account)
        ? `${account.display_name} (@${account.username})`
        : account.display_name;
    },
    [needsHandle],
  );
}
