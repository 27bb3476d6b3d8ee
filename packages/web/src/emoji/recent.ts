const KEY = "parley.emojis";
const MOST = 16;

/** What people react with, for as long as nothing is known of this person. */
const usual = "👍 ❤️ 😂 🎉 🙏 👀 🔥 ✅ 👎 😊 🤔 😢 🚀 💯 👏 🙌".split(" ");

/** The emoji to offer first: those picked last, then the usual ones. */
export const frequentEmojis = (count = MOST): string[] =>
  [...new Set([...recentEmojis(), ...usual])].slice(0, count);

/** What was picked on this device, the last one first. */
function recentEmojis(): string[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(kept) ? kept.filter((each) => typeof each === "string") : [];
  } catch {
    return [];
  }
}

export function rememberEmoji(emoji: string): void {
  const others = recentEmojis().filter((each) => each !== emoji);
  localStorage.setItem(KEY, JSON.stringify([emoji, ...others].slice(0, MOST)));
}
