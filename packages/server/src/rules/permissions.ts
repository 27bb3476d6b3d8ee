import type { AccountRecord } from "./accounts.ts";

type Actor = Pick<AccountRecord, "id">;
type Group = { readonly admin_id: number | null };

/** The sender, the owner of the sending agent and the group's admin may delete a message for everyone. */
export const mayDelete = (
  actor: Actor,
  message: { sender_id: number; sender_owner_id: number | null },
  conversation: Group,
) =>
  message.sender_id === actor.id ||
  message.sender_owner_id === actor.id ||
  conversation.admin_id === actor.id;

/** The group's admin may remove anybody; others may remove themselves and their own agents. */
export const mayRemove = (
  actor: Actor,
  member: Pick<AccountRecord, "id" | "owner_id">,
  conversation: Group,
) => conversation.admin_id === actor.id || member.id === actor.id || member.owner_id === actor.id;

/** Anybody may invite people; only its owner may invite an agent. Accounts of hooks only post. */
export const mayInvite = (
  actor: Actor,
  invited: Pick<AccountRecord, "kind" | "owner_id" | "provider">,
) => invited.kind === "human" || (invited.owner_id === actor.id && invited.provider !== null);

/** The agent's owner, the person who triggered it and the group's admin may stop and retry a turn. */
export const mayControlTurn = (
  actor: Actor,
  turn: { agent: { owner_id: number | null }; trigger_sender_id: number },
  conversation: Group,
) =>
  turn.agent.owner_id === actor.id ||
  turn.trigger_sender_id === actor.id ||
  conversation.admin_id === actor.id;
