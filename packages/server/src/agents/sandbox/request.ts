/** What the sandbox reads out of a request, whichever protocol it came in. */
export interface Asked {
  model: string;
  /** The longest answer allowed, in tokens. */
  maxTokens: number;
  /** Who said the last thing, if the line is labelled. */
  sender: string | undefined;
  /** The last thing a person said, without label and handles. */
  text: string;
  /** Estimated. */
  inputTokens: number;
}

interface Body {
  model?: string;
  max_tokens?: number;
  max_completion_tokens?: number;
  /** One protocol has the system text here, the other as the first message. */
  system?: string;
  messages?: { role: string; content?: Content | null }[];
}

/** Text, or a list of parts: the protocols agree on that, but not on the parts. */
type Content = string | { type: string; text?: string }[];

const label = /^(\S[^:\n]{0,79}): /gm;
const handle = /@[a-z0-9_]+:[a-z0-9_-]+/gi;

export function readRequest(body: string): Asked {
  const { model = "sandbox", messages = [], ...rest } = JSON.parse(body) as Body;
  const texts = messages.map(({ role, content }) => ({ role, text: textOf(content) }));
  const system = rest.system ?? texts.find(({ role }) => role === "system")?.text ?? "";
  const said = texts.findLast(({ role, text }) => role === "user" && text !== "")?.text ?? "";
  const length = texts.reduce((sum, { text }) => sum + text.length, 0);
  return {
    model,
    maxTokens: rest.max_completion_tokens ?? rest.max_tokens ?? Number.POSITIVE_INFINITY,
    inputTokens: estimateTokens((rest.system?.length ?? 0) + length),
    ...lastLine(said, system),
  };
}

/** The text parts of a message. The sandbox looks at no files and no calls of tools. */
function textOf(content: Content | null | undefined): string {
  if (typeof content === "string") return content;
  const texts = (content ?? []).filter(({ type }) => type === "text");
  return texts.map(({ text }) => text).join("\n\n");
}

export const estimateTokens = (characters: number) => Math.ceil(characters / 4);

/**
 * The last labelled line of what people said. Later lines of a message may look labelled too
 * («note: …»), so a label counts there only if the system text names the sender.
 */
function lastLine(said: string, system: string): Pick<Asked, "sender" | "text"> {
  const labels = [...said.matchAll(label)];
  const last = labels.findLast(({ index, 1: name = "" }) => index === 0 || system.includes(name));
  const text = last ? said.slice(last.index + last[0].length) : said;
  return { sender: last?.[1], text: text.replaceAll(handle, "").trim() };
}
