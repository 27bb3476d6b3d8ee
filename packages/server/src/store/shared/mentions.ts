import type { MessageRecord } from "../messages.ts";

/** What an edit changes of the unread mentions of a message. An imported one has none. */
export const mentionDifference = (
  { mentions: before, imported }: MessageRecord,
  after: readonly string[],
) => ({
  removed: imported ? [] : before.filter((username) => !after.includes(username)),
  added: imported ? [] : after.filter((username) => !before.includes(username)),
});

/** Messages without mentions store null. */
export const toStoredMentions = (mentions: readonly string[]) =>
  mentions.length === 0 ? null : mentions;
