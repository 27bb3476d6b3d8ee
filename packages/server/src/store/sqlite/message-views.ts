import type { Connection } from "./connection.ts";

/** The text that a message has streamed so far. */
export function streamedText(db: Connection) {
  const chunks = db.query<{ text: string }>(
    "SELECT text FROM chunks WHERE message_id = ? ORDER BY byte_offset",
  );
  return (messageId: number): string =>
    chunks
      .all(messageId)
      .map(({ text }) => text)
      .join("");
}
