import { componentOf } from "@parley/protocol/markup";
import { formAction } from "../rules/action-tokens.ts";
import { badFields, conflict, forbidden } from "../rules/failure.ts";
import { iso } from "../rules/time.ts";
import type { Caller } from "../security/caller.ts";
import type { ElicitationAnswer, ElicitationRecord } from "../store/elicitations.ts";
import type { MessageRecord } from "../store/message-records.ts";
import type { ReadTx, WriteTx } from "../store/store.ts";
import { elicitedValues } from "./elicitation-values.ts";

/** How long the owner has to answer. */
export const ANSWER_MS = 10 * 60_000;

/** What tools ask the caller, as far as it can still be answered, oldest first. */
export async function pendingQuestions(tx: ReadTx, { account }: Caller, now: number) {
  const open = await tx.openElicitations(account.id);
  const ids = open.map(({ message_uuid }) => message_uuid);
  const found = await tx.messageViews(ids, account.id);
  const messages = new Map(found.map((message) => [message.id, message]));
  return open.flatMap(({ message_uuid: message_id, call_uuid: call_id }) => {
    const message = messages.get(message_id);
    if (!message) return [];
    const { conversation_id, sender: agent, created_at } = message;
    const expiresAt = Date.parse(created_at) + ANSWER_MS;
    if (expiresAt <= now) return [];
    const expires_at = iso(expiresAt);
    return [{ message_id, call_id, conversation_id, agent, created_at, expires_at }];
  });
}

/**
 * Stores the owner's answer to what a tool asked in a message of its agent. Throws if the caller is not
 * the owner (403), nothing was asked there that still waits (409), or a value is not what the tool asked
 * for (400).
 */
export async function answerElicitation(
  tx: WriteTx,
  id: string,
  answer: ElicitationAnswer,
  { account }: Caller,
  message: MessageRecord,
): Promise<void> {
  const asked = await tx.elicitation(id);
  const call = asked && (await tx.toolCall(asked.call_uuid));
  const [shown] = await tx.messageViews([message.uuid], account.id);
  const hasForm = componentOf(shown?.content ?? "", formAction(id)) !== null;
  const isHere = call?.agent_id === message.sender_id && hasForm;
  if (!asked || !isHere) throw conflict("no tool waits for an answer to this form");
  if (asked.owner_id !== account.id) {
    throw forbidden("only the agent's owner may answer what its tools ask");
  }
  if (asked.answer) throw conflict("this form is answered already");
  await tx.answerElicitation(id, { ...answer, content: contentOf(asked, answer) });
  tx.emit({ kind: "elicitation_answered", id });
}

function contentOf({ schema }: ElicitationRecord, { action, content }: ElicitationAnswer) {
  if (action === "decline") return {};
  const values = elicitedValues(schema, content);
  if ("content" in values) return values.content;
  const wrong = Object.entries(values.wrong).map(([name, problem]) => [`fields.${name}`, problem]);
  throw badFields(Object.fromEntries(wrong));
}
