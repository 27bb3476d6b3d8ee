import type { Message } from "@parley/protocol";

/** Forms in which a tool asks the owner of its agent something, and their «Decline» button. */
const ELICITATION = /^(?:form_submit|dismiss):elicit-/;

/** Whether a component answers what a tool asked. */
export const answersTool = (token: string) => ELICITATION.test(token);

/**
 * Whether the call has ended during which a tool asked what is in the message. An agent runs one turn at
 * a time in a conversation, so the call is of the turn that began last before the question, or of the
 * message that this turn continues. False if they are not loaded.
 */
export function isQuestionOver(id: string, messages: readonly Message[]): boolean {
  const question = messages.find((message) => message.id === id);
  const turn = messages.findLast(
    (message) =>
      question !== undefined &&
      message.turn !== null &&
      message.seq < question.seq &&
      message.sender.username === question.sender.username,
  );
  if (!turn) return false;
  const continued = messages.find((message) => message.id === turn.turn?.continues);
  if (turn.turn?.continues && !continued) return false;
  const calls = [turn, ...(continued ? [continued] : [])].flatMap((each) => each.tool_calls ?? []);
  return !calls.some(({ status }) => status === "running");
}

/** Whether a message asks what a tool wants to know. The server posts it outside of the agent's turn. */
export const isQuestion = ({ content, turn }: Pick<Message, "content" | "turn">) =>
  turn === null && content.includes('<form id="elicit-');
