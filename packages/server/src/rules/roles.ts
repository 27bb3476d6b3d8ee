import type { AssistantPart, ModelMessage, TextPart, UserPart } from "./model-content.ts";

/** Joins consecutive messages of one role: providers require that the roles alternate. */
export function joinRoles(messages: readonly ModelMessage[]): ModelMessage[] {
  const joined: ModelMessage[] = [];
  for (const next of messages) {
    const last = joined.at(-1);
    if (last?.role === "user" && next.role === "user") {
      joined.splice(-1, 1, { role: "user", content: joinContent(last.content, next.content) });
    } else if (last?.role === "assistant" && next.role === "assistant") {
      joined.splice(-1, 1, {
        role: "assistant",
        content: joinContent(last.content, next.content),
      });
    } else {
      joined.push(next);
    }
  }
  return joined;
}

/** Makes one text of adjacent ones: some providers accept a text, but no list of texts. */
export const joinTexts = (parts: readonly UserPart[]): UserPart[] =>
  parts.reduce<UserPart[]>((joined, part) => joinContent(joined, [part]), []);

/** Concatenates parts. Two adjacent texts become one, with a blank line between them. */
function joinContent<Part extends UserPart | AssistantPart>(
  before: readonly Part[],
  after: readonly Part[],
): (Part | TextPart)[] {
  const last = before.at(-1);
  const [first] = after;
  if (last?.type !== "text" || first?.type !== "text") return [...before, ...after];
  const text = `${last.text}\n\n${first.text}`;
  return [...before.slice(0, -1), { type: "text", text }, ...after.slice(1)];
}
