const KEY = "parley.emojis";
const MAX_RECENT = 16;

/** Offered until the person has picked others. */
const usual = "👍 ❤️ 😂 🎉 🙏 👀 🔥 ✅ 👎 😊 🤔 😢 🚀 💯 👏 🙌".split(" ");

/** The emoji to offer first: the last picked ones, then the usual ones. */
export const frequentEmojis = (count = MAX_RECENT): string[] =>
  [...new Set([...recentEmojis(), ...usual])].slice(0, count);

/** Picked on this device, the last one first. */
function recentEmojis(): string[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(stored) ? stored.filter((each) => typeof each === "string") : [];
  } catch {
    // The storage is blocked, or damaged.
    return [];
  }
}

export function rememberEmoji(emoji: string): void {
  const others = recentEmojis().filter((each) => each !== emoji);
  localStorage.setItem(KEY, JSON.stringify([emoji, ...others].slice(0, MAX_RECENT)));
}
