import { describeFile, isFile, namedFiles, type Part, type SandboxFile } from "./request-files.ts";
import {
  type Command,
  commandsIn,
  type Message,
  newResults,
  type SandboxResult,
  type Tool,
  toolName,
} from "./request-tools.ts";

/** What the sandbox reads from a request of either protocol. */
export interface SandboxRequest {
  model: string;
  /** The token limit of the answer. */
  maxTokens: number;
  /** Who wrote the last message, if it is labelled. */
  sender: string | undefined;
  /** The last message, without its label, mentions and descriptions of files. */
  text: string;
  /** The lines of the last message that ask for a tool call. */
  commands: Command[];
  /** The names of the tools that are offered. */
  tools: string[];
  /** The results of tools, if no message follows them. */
  results: SandboxResult[];
  /** Descriptions of the files since the last answer. */
  newFiles: string[];
  /** Descriptions of all files. */
  files: string[];
  /** Estimated. */
  inputTokens: number;
}

interface Body {
  model?: string;
  max_tokens?: number;
  max_completion_tokens?: number;
  /** Anthropic's protocol has the system text here, OpenAI's has it as the first message. */
  system?: string;
  messages?: Message[];
  tools?: Tool[];
}

/** Both protocols send a string or a list of parts. They share only the text parts. */
type Content = string | Part[];

export async function readRequest(body: string): Promise<SandboxRequest> {
  const { model = "sandbox", messages = [], tools = [], ...rest } = JSON.parse(body) as Body;
  const texts = messages.map(({ role, content }) => ({ role, text: textOf(content) }));
  const system = rest.system ?? texts.find(({ role }) => role === "system")?.text ?? "";
  const lastUserText = texts.findLast(({ role, text }) => role === "user" && text !== "")?.text;
  const length = texts.reduce((sum, { text }) => sum + text.length, 0);
  const files = await Promise.all(messages.map(({ content }) => filesOf(content)));
  const firstNew = messages.findLastIndex(({ role }) => role === "assistant") + 1;
  const newFiles = files.slice(firstNew);
  const fileTokens = files.flat().reduce((sum, { tokens }) => sum + tokens, 0);
  const isAsked = texts.slice(firstNew).some(({ role, text }) => role === "user" && text !== "");
  const toolLength = tools.length === 0 ? 0 : JSON.stringify(tools).length;
  return {
    model,
    maxTokens: rest.max_completion_tokens ?? rest.max_tokens ?? Number.POSITIVE_INFINITY,
    inputTokens: estimateTokens((rest.system?.length ?? 0) + length + toolLength) + fileTokens,
    tools: tools.map(toolName),
    results: isAsked ? [] : newResults(messages),
    newFiles: newFiles.flat().map(({ description }) => description),
    files: files.flat().map(({ description }) => description),
    ...lastMessage(lastUserText ?? "", system),
  };
}

/** The text parts of a message. */
function textOf(content: Content | null | undefined): string {
  if (typeof content === "string") return content;
  const texts = (content ?? []).filter((part) => !isFile(part));
  return texts.map(({ text }) => text).join("\n\n");
}

async function filesOf(content: Content | null | undefined): Promise<SandboxFile[]> {
  const named = namedFiles(textOf(content));
  if (typeof content === "string") return named;
  const files = await Promise.all((content ?? []).filter(isFile).map(describeFile));
  return [...files.filter((file) => file !== null), ...named];
}

export const estimateTokens = (characters: number) => Math.ceil(characters / 4);

/** What the participants are called: it stands before the first message. */
const NAMES = /^\(In this conversation .*\)\n\n/;
const LABEL = /^(\S[^:\n]{0,79}): /gm;
const MENTION = /@[a-z0-9_]+:[a-z0-9_-]+/gi;
/** How a message tells of its files. Their names must not count as keywords. */
const FILE_LINE = /^ *\(file "(?:[^"\\]|\\.)*", [^\n]*\)$/gm;

/**
 * The last labelled message in the user's text. Later lines of a message may look labelled too
 * ("note: …"), so a label there counts only if the system text names the sender.
 */
function lastMessage(
  userText: string,
  system: string,
): Pick<SandboxRequest, "sender" | "text" | "commands"> {
  const text = userText.replace(NAMES, "");
  const labels = [...text.matchAll(LABEL)];
  const last = labels.findLast(({ index, 1: name = "" }) => index === 0 || system.includes(name));
  const content = last ? text.slice(last.index + last[0].length) : text;
  const written = content.replaceAll(FILE_LINE, "");
  return {
    sender: last?.[1],
    text: written.replaceAll(MENTION, "").trim(),
    commands: commandsIn(written),
  };
}
