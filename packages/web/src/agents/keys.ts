/** How keys of a provider usually begin, by the provider's id; other providers have no known shape. */
const beginnings: Record<string, { is: RegExp; words: string }> = {
  claude: { is: /^sk-ant-/, words: "sk-ant-" },
  gpt: { is: /^sk-(?!ant-)/, words: "sk-" },
};

const SANDBOX = /^sandbox/i;
const SHORTEST = 16;

/** Without what is often copied along: quotes, a variable's name, the word before it in a header. */
export const cleanKey = (text: string): string =>
  text
    .trim()
    .replace(/^(?:export\s+)?[A-Z][A-Z0-9_]*=/, "")
    .replace(/^(["'`])(.*)\1$/s, "$2")
    .replace(/^Bearer\s+/i, "")
    .trim();

/** Why it cannot be a key at all, so that it is not worth sending. */
export function keyProblem(key: string): string | null {
  if (key === "") return "Please fill this in.";
  if (/[•*…]{3}|\.{3}/.test(key))
    return "This is a masked key. Copy the whole of it, where it is shown once.";
  if (/\s/.test(key)) return "A key is one line without spaces. Was something else copied along?";
  if (!/^[\x21-\x7e]*$/.test(key))
    return "A key has only letters, digits and signs of a plain keyboard.";
  return key.length > 1024 ? "This is too long for a key." : null;
}

/** Why it may be the wrong key. A gateway may have keys of any shape, so this is asked, not refused. */
export function keyDoubt(provider: string, key: string): string | null {
  if (SANDBOX.test(key)) return null;
  const usual = beginnings[provider];
  if (usual && !usual.is.test(key))
    return `Keys for this agent usually begin with «${usual.words}».`;
  return key.length < SHORTEST ? "This is shorter than keys usually are." : null;
}
