import type { ModelMessage, ToolResultPart } from "../../rules/model-content.ts";
import { isFunctionOf } from "../../rules/tool-names.ts";
import type { ModelRequest } from "../providers/adapter.ts";
import { parseObject } from "../providers/tool-calls.ts";
import { filesOf, type SandboxFile } from "./request-files.ts";

export interface SandboxCall {
  name: string;
  input: Record<string, unknown>;
}

/** A line of a message that asks for a call. */
export interface Command {
  name: string;
  /** JSON, if the line is right. */
  input: string;
}

export type SandboxRequest = Awaited<ReturnType<typeof readRequest>>;
export type SandboxResult = ReturnType<typeof newResults>[number];

export async function readRequest({ system, messages, tools }: ModelRequest) {
  const firstNew = messages.findLastIndex(({ role }) => role === "assistant") + 1;
  const texts = messages.map(({ content }) => textOf(content));
  const asked = messages.findLastIndex(({ role }, at) => role === "user" && texts[at] !== "");
  const files = await Promise.all(messages.map((each, at) => filesOf(each, texts[at] ?? "")));
  const described = (from: number) => files.slice(from).flatMap(descriptionsOf);
  const read = system + texts.join("") + (tools.length === 0 ? "" : JSON.stringify(tools));
  const fileTokens = files.flat().reduce((sum, { tokens }) => sum + tokens, 0);
  return {
    /** Estimated. */
    inputTokens: estimateTokens(read.length) + fileTokens,
    tools: tools.map(({ name }) => name),
    /** The results of tools, if no message follows them. */
    results: asked >= firstNew ? [] : newResults(messages, firstNew),
    /** Descriptions of the files since the last answer. */
    newFiles: described(firstNew),
    files: described(0),
    ...lastMessage(texts[asked] ?? "", system),
  };
}

const descriptionsOf = (files: readonly SandboxFile[]) => files.map((each) => each.description);

const textOf = (content: ModelMessage["content"] | ToolResultPart["content"]): string =>
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
function lastMessage(userText: string, system: string) {
  const text = userText.replace(NAMES, "");
  const labels = [...text.matchAll(LABEL)];
  const last = labels.findLast(({ index, 1: name = "" }) => index === 0 || system.includes(name));
  const content = last ? text.slice(last.index + last[0].length) : text;
  const written = content.replaceAll(FILE_LINE, "");
  return {
    /** Who wrote it, if it is labelled. */
    sender: last?.[1],
    /** Without its label, mentions and descriptions of files. */
    text: written.replaceAll(MENTION, "").trim(),
    commands: commandsIn(written),
  };
}

/** The results from this message on: those that the model is asked to go on with. */
function newResults(messages: readonly ModelMessage[], from: number) {
  const calls = messages.flatMap(({ content }) =>
    content.filter((part) => part.type === "tool_use"),
  );
  const names = new Map(calls.map(({ id, name }) => [id, name]));
  return messages
    .slice(from)
    .flatMap(({ content }) => content.filter((part) => part.type === "tool_result"))
    .map(({ tool_use_id, content, is_error }) => ({
      /** The name of the tool. May have markup, as the text. */
      tool: names.get(tool_use_id) ?? "",
      text: textOf(content),
      failed: is_error,
    }));
}

const COMMAND = /^(?:@\S+\s+)*\/tool\s+(\S+)\s*(.*)$/;

/** The lines `/tool <name> {json}` of a message. Without JSON there are no arguments. */
const commandsIn = (message: string): Command[] =>
  message.split("\n").flatMap((line) => {
    const [, name, input] = COMMAND.exec(line.trim()) ?? [];
    return name === undefined ? [] : [{ name, input: input || "{}" }];
  });

/** The command for an offered tool: names of servers may have characters that functions do not have. */
export function offeredCommand(command: Command, tools: readonly string[]): Command {
  if (tools.includes(command.name)) return command;
  const [, written = "", input = "{}"] =
    /^([^{]*)(\{.*)?$/.exec(`${command.name} ${command.input}`) ?? [];
  const name = tools.find((each) => isFunctionOf(each, written.trim()));
  return name === undefined ? command : { name, input };
}

/** Undefined if the arguments are no JSON object. */
export function readCommand({ name, input: json }: Command): SandboxCall | undefined {
  const input = parseObject(json);
  return input ? { name, input } : undefined;
}
