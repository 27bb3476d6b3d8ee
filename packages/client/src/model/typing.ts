import type { Account, EventFrame } from "@parley/protocol";
import type { State } from "./state.ts";
import { put } from "./structural-sharing.ts";

type Typing = State["typing"];

/** Who is typing after an event. A message that is whole ends its sender's typing. */
export function typingAfter({ typing, me }: State, frame: EventFrame): Typing {
  switch (frame.method) {
    case "events.typing": {
      const { conversation_id, actor, is_typing } = frame.params;
      if (actor.username === me?.username) return typing;
      return withActor(typing, conversation_id, actor, is_typing);
    }
    case "events.messageNew":
    case "events.messageComplete": {
      const { conversation_id, sender, finalized_at } = frame.params;
      if (finalized_at === null) return typing;
      return withActor(typing, conversation_id, sender, false);
    }
    default:
      return typing;
  }
}

function withActor(typing: Typing, chatId: string, actor: Account, isOn: boolean): Typing {
  const before = typing[chatId]?.actors ?? [];
  const isShown = before.some(({ username }) => username === actor.username);
  if (isShown === isOn) return typing;
  const actors = isOn
    ? [...before, actor]
    : before.filter(({ username }) => username !== actor.username);
  return put(typing, chatId, actors.length > 0 ? { actors } : undefined);
}

/** Without one who is typing, or without all. */
export function withoutTyping(
  typing: Typing,
  { chatId, username }: { chatId?: string; username?: string },
): Typing {
  if (chatId === undefined || username === undefined) {
    return Object.keys(typing).length > 0 ? {} : typing;
  }
  const actor = typing[chatId]?.actors.find((each) => each.username === username);
  return actor ? withActor(typing, chatId, actor, false) : typing;
}
