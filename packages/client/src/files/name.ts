/** The longest name that the service takes. */
const MAX_LENGTH = 255;
const UNNAMED = "file";

/** The name of a blob as the service takes it: without path and control characters. */
export function nameOf(blob: Blob): string {
  const path = "name" in blob && typeof blob.name === "string" ? blob.name : "";
  const [base = ""] = path.split(/[/\\]/).slice(-1);
  const name = base.replace(/\p{Cc}/gu, " ").trim();
  return /^\.{0,2}$/.test(name) ? UNNAMED : shorten(name);
}

/** Cuts a long name in front of its extension. */
function shorten(name: string): string {
  if (name.length <= MAX_LENGTH) return name;
  const [extension = ""] = /\.[^.]{1,20}$/.exec(name) ?? [];
  const kept = name.slice(0, MAX_LENGTH - extension.length);
  // Half of a surrogate pair is no character.
  return kept.replace(/[\ud800-\udbff]$/, "") + extension;
}
