/** How forms that ask what a tool wants to know are recognized, and what is submitted with them. */

/** What the ids of such forms begin with. */
export const FORM_PREFIX = "elicit-";

/** The action with which the form of a question is submitted. */
export const formAction = (id: string) => `form_submit:${FORM_PREFIX}${id}`;

const ANSWER = /^(?:form_submit|dismiss):elicit-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;

/** Reads an answer from an action token. Null if the token is something else. */
export function elicitationAnswer(
  action: string,
): { id: string; action: "accept" | "decline" } | null {
  const id = ANSWER.exec(action)?.[1];
  if (id === undefined) return null;
  return { id, action: action.startsWith("dismiss:") ? "decline" : "accept" };
}

/** Whether a message asks for something that a tool wants to know: its words are not the agent's. */
export const isElicitation = (content: string) => content.includes(`<form id="${FORM_PREFIX}`);
