import { MAX_CONTENT_BYTES } from "@parley/protocol/operations/messages";
import type { Delivered } from "../../changes/bus.ts";
import { messageChanged } from "../../changes/change.ts";
import { endArchives } from "../../domain/chat-states.ts";
import { elicitationForm } from "../../domain/elicitation-form.ts";
import { ANSWER_MS } from "../../domain/elicitations.ts";
import { formProblem } from "../../rules/elicitation-fields.ts";
import { untilAborted } from "../../security/guarded-fetch.ts";
import type { ElicitationAnswer } from "../../store/elicitations.ts";
import type { Store, WriteTx } from "../../store/store.ts";
import type { ToolCallRecord } from "../../store/tool-calls.ts";
import { FormRefused } from "./errors.ts";
import type { Elicit } from "./mcp-client.ts";

/** Each question is a message to everybody in the conversation. */
const MAX_QUESTIONS_PER_CALL = 8;

/** Posts what tools ask as forms in the conversation, and waits for the answers. */
export function createElicitations(store: Store) {
  const waiting = new Map<string, () => void>();

  const readAnswer = async (id: string): Promise<ElicitationAnswer | null> =>
    (await store.read((tx) => tx.elicitation(id)))?.answer ?? null;

  async function answerOf(id: string, signal: AbortSignal): Promise<ElicitationAnswer | null> {
    const { promise, resolve } = Promise.withResolvers<void>();
    waiting.set(id, resolve);
    try {
      // It may have been answered before this waited.
      const early = await readAnswer(id);
      if (early) return early;
      const ended = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]);
      // Nobody is told if the time is up: no answer is one too.
      await untilAborted(promise, ended).catch(() => {});
      return signal.aborted ? null : await readAnswer(id);
    } finally {
      waiting.delete(id);
    }
  }

  return {
    /** Asks the owner of the agent that makes the call. Rejects with `FormRefused` what no form can ask. */
    ask: (call: ToolCallRecord, signal: AbortSignal): Elicit => {
      let questions = 0;
      return async ({ message, schema }) => {
        if (++questions > MAX_QUESTIONS_PER_CALL) return { action: "cancel" };
        const problem = formProblem(schema);
        if (problem !== null) throw new FormRefused(problem);
        const id = Bun.randomUUIDv7();
        const isPosted = await store.write((tx) => post(tx, call, { id, message, schema }));
        const answer = isPosted ? await answerOf(id, signal) : null;
        if (answer === null) return { action: "cancel" };
        if (answer.action === "decline") return { action: "decline" };
        return { action: "accept", content: { ...answer.content } };
      };
    },
    /** Hands an answer, given on any node, to the call that waits for it. */
    receive: (change: Delivered) => {
      if (change.kind === "elicitation_answered") waiting.get(change.id)?.();
    },
  };
}

/**
 * Posts the form as a message of the agent. False if the agent has left the conversation or the call has
 * ended. Throws `FormRefused` if the form is longer than a message may be.
 */
async function post(
  tx: WriteTx,
  call: ToolCallRecord,
  { id, message, schema }: Parameters<Elicit>[0] & { id: string },
): Promise<boolean> {
  const { agent, server, owner_id, conversation_id } = call;
  const conversation = await tx.conversation(call.conversation_uuid, agent.id);
  const settings = await tx.agent(agent.id);
  if (!conversation?.joined || !settings) return false;
  if ((await tx.toolCall(call.uuid))?.status !== "running") return false;
  const owner = settings.owner.username;
  const content = elicitationForm({ id, server, owner, message, schema });
  if (Buffer.byteLength(content) > MAX_CONTENT_BYTES) {
    throw new FormRefused("The form is longer than a message may be.");
  }
  const posted = await tx.insertMessage({
    conversation,
    sender: agent,
    content,
    client_msg_id: null,
    reply_to_id: null,
    mentions: await tx.participantsAmong(conversation.id, [owner]),
    at: Date.now(),
  });
  if (!posted) return false;
  await tx.insertElicitation({
    uuid: id,
    call_uuid: call.uuid,
    conversation_id,
    owner_id,
    message_uuid: posted.id,
    schema,
  });
  tx.emit(messageChanged("events.messageNew", posted, posted.seq));
  await endArchives(tx, conversation, agent);
  return true;
}
