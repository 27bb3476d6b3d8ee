import type { Account, ConversationChange, EventFrame } from "@parley/protocol";
import type { State } from "./state.ts";
import { setEntry } from "./structural-sharing.ts";

type Typing = State["typing"];

/** Who is typing after an event. A finished message ends its sender's typing, and so does leaving. */
export function typingAfter({ typing, me }: State, frame: EventFrame): Typing {
  switch (frame.method) {
    case "events.typing": {
      const { conversation_id, actor, is_typing } = frame.params;
      if (actor.username === me?.username) return typing;
      return setTyping(typing, conversation_id, actor, is_typing);
    }
    case "events.messageNew":
    case "events.messageComplete": {
      const { conversation_id, sender, finalized_at } = frame.params;
      if (finalized_at === null) return typing;
      return setTyping(typing, conversation_id, sender, false);
    }
    case "events.conversationUpdated": {
      const { id, changes } = frame.params;
      return leaversOf(changes).reduce((rest, actor) => setTyping(rest, id, actor, false), typing);
    }
    default:
      return typing;
  }
}

/** Those who left or were removed. Older servers send no changes. */
const leaversOf = (changes: readonly ConversationChange[] = []): Account[] =>
  changes
    .filter(({ kind }) => kind === "left" || kind === "removed")
    .flatMap(({ subjects }) => subjects);

function setTyping(typing: Typing, chatId: string, actor: Account, isTyping: boolean): Typing {
  const before = typing[chatId]?.actors ?? [];
  const wasTyping = before.some(({ username }) => username === actor.username);
  if (wasTyping === isTyping) return typing;
  const actors = isTyping
    ? [...before, actor]
    : before.filter(({ username }) => username !== actor.username);
  return setEntry(typing, chatId, actors.length > 0 ? { actors } : undefined);
}

/** Ends the typing of one account in one conversation, or all typing if none is given. */
export function endTyping(
  typing: Typing,
  { chatId, username }: { chatId?: string; username?: string },
): Typing {
  if (chatId === undefined || username === undefined) {
    return Object.keys(typing).length > 0 ? {} : typing;
  }
  const actor = typing[chatId]?.actors.find((each) => each.username === username);
  return actor ? setTyping(typing, chatId, actor, false) : typing;
}
