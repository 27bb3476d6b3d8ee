import type { Account } from "@parley/protocol";
import { deceptiveNames } from "@parley/protocol/text/names";
import { useCallback } from "react";
import { firstName, nameOf, ownerOf } from "../lib/names.ts";
import { useChatContext } from "./context.ts";

/**
 * People whose name could be confused with the name of another person or agent. Agents are left out:
 * the chip with their owner distinguishes them.
 */
export function confusablePeople(participants: readonly Account[]): ReadonlySet<string> {
  const named = participants.map((each) => ({ ...each, display_name: nameOf(each) }));
  const people = participants.filter(({ kind }) => kind === "human");
  const confused = deceptiveNames(named);
  return new Set(people.map(({ username }) => username).filter((name) => confused.has(name)));
}

/** Whether the @username must be shown beside the name: for confusable names, and after leaving. */
export function useNeedsHandle(): (account: Account) => boolean {
  const { chat, confusable } = useChatContext();
  const { participants, participant_count } = chat;
  return useCallback(
    ({ kind, username }: Account) => {
      if (kind === "agent") return false;
      // In large groups, not all participants are loaded at first.
      const isComplete = participants.length === participant_count;
      const isHere = !isComplete || participants.some((each) => each.username === username);
      return confusable.has(username) || !isHere;
    },
    [participants, participant_count, confusable],
  );
}

/** A short name for lists of names: the first name of a person, or the @username where names could be confused. */
export function useShortName(): (account: Account) => string {
  const needsHandle = useNeedsHandle();
  const speaker = useSenderName();
  return (account) => {
    if (account.kind === "agent") return speaker(account);
    return needsHandle(account) ? `@${account.username}` : firstName(account.display_name);
  };
}

/** The name of a sender as plain text, for screen readers and for lines without chips. */
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
