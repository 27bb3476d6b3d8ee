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

/** The words of the tool that asks in a message, as Markdown: the server quotes them. */
export const askedWords = (content: string) =>
  content
    .split("\n")
    .filter((line) => line.startsWith(">"))
    .map((line) => line.slice(1))
    .join("\n");

/**
 * The messages as they are read: a turn stands below what its tool asks, and so does the result, though
 * its message is older than the question.
 */
export function inReadingOrder<Read extends Message>(messages: readonly Read[]): readonly Read[] {
  if (!messages.some(isQuestion)) return messages;
  const ordered: Read[] = [];
  for (const message of messages) {
    const asking = isQuestion(message)
      ? ordered.findLastIndex(
          ({ turn, sender }) => turn !== null && sender.username === message.sender.username,
        )
      : -1;
    const turns = asking === -1 ? [] : ordered.splice(asking, 1);
    ordered.push(message, ...turns);
  }
  return ordered;
}
