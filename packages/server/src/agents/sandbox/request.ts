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
  messages?: { role: string; content: string }[];
}

const label = /^(\S[^:\n]{0,79}): /gm;
const handle = /@[a-z0-9_]+:[a-z0-9_-]+/gi;

export function readRequest(body: string): Asked {
  const { model = "sandbox", messages = [], ...rest } = JSON.parse(body) as Body;
  const system = rest.system ?? messages.find(({ role }) => role === "system")?.content ?? "";
  const said = messages.findLast(({ role }) => role === "user")?.content ?? "";
  const length = messages.reduce((sum, { content }) => sum + content.length, 0);
  return {
    model,
    maxTokens: rest.max_completion_tokens ?? rest.max_tokens ?? Number.POSITIVE_INFINITY,
    inputTokens: estimateTokens((rest.system?.length ?? 0) + length),
    ...lastLine(said, system),
  };
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
