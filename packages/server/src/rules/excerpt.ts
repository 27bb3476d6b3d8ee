import type { Message } from "@parley/protocol";

/** Enough for a preview: a list shows a hundred conversations, and a message has up to 32 KiB. */
const EXCERPT_CHARACTERS = 2000;

/** The latest message as a conversation shows it: of a long text only the beginning. */
export function excerptOf(message: Message): Message {
  const { content } = message;
  if (content.length <= EXCERPT_CHARACTERS) return message;
  // The cut may split a surrogate pair.
  const start = content.slice(0, EXCERPT_CHARACTERS);
  return { ...message, content: start.isWellFormed() ? start : start.slice(0, -1), excerpt: true };
}
