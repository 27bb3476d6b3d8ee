/** What an edit changes of the mentions of a message. */
export const mentionDifference = (before: readonly string[], after: readonly string[]) => ({
  removed: before.filter((username) => !after.includes(username)),
  added: after.filter((username) => !before.includes(username)),
});

/** Messages without mentions store null. */
export const toStoredMentions = (mentions: readonly string[]) =>
  mentions.length === 0 ? null : mentions;
