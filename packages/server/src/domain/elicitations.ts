import { elicitedValues } from "../rules/elicitation-values.ts";
import { badFields, conflict, forbidden } from "../rules/failure.ts";
import type { Caller } from "../security/caller.ts";
import type { ElicitationAnswer, ElicitationRecord } from "../store/elicitations.ts";
import type { MessageRecord } from "../store/messages.ts";
import type { WriteTx } from "../store/store.ts";

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
  const isHere =
    call?.conversation_id === message.conversation_id && call.agent_id === message.sender_id;
  if (!asked || !isHere) throw conflict("no tool waits for an answer to this form");
  if (asked.owner_id !== account.id) {
    throw forbidden("only the agent's owner may answer what its tools ask");
  }
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
