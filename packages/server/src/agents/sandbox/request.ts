import type { ModelMessage } from "../../rules/model-content.ts";
import type { ModelRequest } from "../providers/adapter.ts";
import { filesOf } from "./request-files.ts";
import { type Command, commandsIn, newResults, type SandboxResult } from "./request-tools.ts";

/** What the sandbox reads from a request. */
export interface SandboxRequest {
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

export async function readRequest(request: ModelRequest): Promise<SandboxRequest> {
  const { system, messages, tools } = request;
  const firstNew = messages.findLastIndex(({ role }) => role === "assistant") + 1;
  const texts = messages.map(textOf);
  const asked = messages.findLastIndex(({ role }, at) => role === "user" && texts[at] !== "");
  const files = await Promise.all(messages.map((each) => filesOf(each, textOf(each))));
  const described = (from: number) =>
    files
      .slice(from)
      .flat()
      .map((each) => each.description);
  const read = system + texts.join("") + (tools.length === 0 ? "" : JSON.stringify(tools));
  const fileTokens = files.flat().reduce((sum, { tokens }) => sum + tokens, 0);
  return {
    inputTokens: estimateTokens(read.length) + fileTokens,
    tools: tools.map(({ name }) => name),
    results: asked >= firstNew ? [] : newResults(messages, firstNew),
    newFiles: described(firstNew),
    files: described(0),
    ...lastMessage(texts[asked] ?? "", system),
  };
}

const textOf = ({ content }: ModelMessage): string =>
  content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n\n");

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
