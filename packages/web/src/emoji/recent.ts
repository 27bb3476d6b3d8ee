const KEY = "parley.emojis";
const MOST = 16;

/** What was picked on this device, the last one first. */
export function recentEmojis(): string[] {
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
