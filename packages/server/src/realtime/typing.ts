import type { Account, EventFrame } from "@parley/protocol";
import type { Hub } from "./hub.ts";

const EXPIRES_MS = 6000;

export interface Typing {
  start(conversation: string, actor: Account): void;
  stop(conversation: string, actor: Account): void;
}

/** Who is typing where. It ends by itself when it is not renewed or when its client has gone. */
export function typing(hub: Hub, expiresMs = EXPIRES_MS): Typing {
  const active = new Map<string, Map<string, NodeJS.Timeout>>();

  const show = (conversation_id: string, actor: Account, is_typing: boolean) => {
    const { username, kind, display_name } = actor;
    const params = { conversation_id, actor: { username, kind, display_name }, is_typing };
    const frame: EventFrame = { method: "events.typing", params };
    hub.pass(frame, { conversation: conversation_id }, username);
  };

  function stop(conversation: string, actor: Account): void {
    const mine = active.get(actor.username);
    clearTimeout(mine?.get(conversation));
    mine?.delete(conversation);
    if (mine?.size === 0) active.delete(actor.username);
    show(conversation, actor, false);
  }

  hub.onGone((account) => {
    for (const conversation of active.get(account.username)?.keys() ?? []) {
      stop(conversation, account);
    }
  });

  return {
    start(conversation, actor) {
      const mine = active.get(actor.username) ?? new Map<string, NodeJS.Timeout>();
      active.set(actor.username, mine);
      const renewed = mine.get(conversation);
      if (renewed) clearTimeout(renewed);
      else show(conversation, actor, true);
      mine.set(
        conversation,
        setTimeout(() => stop(conversation, actor), expiresMs),
      );
    },
    stop,
  };
}
