import { isFunctionOf } from "../../rules/tool-names.ts";
import type { Part } from "./request-files.ts";

/** A call that the sandbox makes. */
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

/** The result of a call, as the sandbox repeats it. */
export interface SandboxResult {
  /** The name of the tool. May have markup, as the text. */
  tool: string;
  text: string;
  failed: boolean;
}

/** A message of either protocol. OpenAI's has calls and results beside the content. */
export interface Message {
  role: string;
  content?: string | Part[] | null;
  tool_calls?: { id: string; function: { name: string; arguments: string } }[];
  tool_call_id?: string;
}

/** Anthropic's definitions have the name at the top, OpenAI's have it in `function`. */
export interface Tool {
  name?: string;
  function?: { name: string };
}

export const toolName = ({ name, function: called }: Tool) => called?.name ?? name ?? "";

/** The results after the last answer: those that the model is asked to go on with. */
export function newResults(messages: readonly Message[]): SandboxResult[] {
  const names = new Map(messages.flatMap(calledTools));
  return messages
    .slice(messages.findLastIndex(({ role }) => role === "assistant") + 1)
    .flatMap(resultsOf)
    .map(({ id, ...result }) => ({ tool: names.get(id) ?? "", ...result }));
}

function calledTools({ content, tool_calls = [] }: Message): [id: string, name: string][] {
  const parts = partsOf(content).filter(({ type }) => type === "tool_use");
  return [
    ...tool_calls.map(({ id, function: { name } }): [string, string] => [id, name]),
    ...parts.map(({ id = "", name = "" }): [string, string] => [id, name]),
  ];
}

type Result = Omit<SandboxResult, "tool"> & { id: string };

/** How the adapter for OpenAI's protocol marks failed calls. */
const FAILED = "Error: ";

function resultsOf({ role, content, tool_call_id = "" }: Message): Result[] {
  if (role === "tool") {
    const text = textOf(content);
    const failed = text.startsWith(FAILED);
    return [{ id: tool_call_id, text: failed ? text.slice(FAILED.length) : text, failed }];
  }
  return partsOf(content)
    .filter(({ type }) => type === "tool_result")
    .map(({ tool_use_id = "", content, is_error = false }) => ({
      id: tool_use_id,
      text: textOf(content),
      failed: is_error,
    }));
}

const partsOf = (content: Message["content"]) => (Array.isArray(content) ? content : []);

const textOf = (content: Message["content"]): string =>
  typeof content === "string"
    ? content
    : partsOf(content)
        .map(({ text = "" }) => text)
        .join("\n\n");

const COMMAND = /^(?:@\S+\s+)*\/tool\s+(\S+)\s*(.*)$/;

/** The lines `/tool <name> {json}` of a message. Without JSON there are no arguments. */
export const commandsIn = (message: string): Command[] =>
  message.split("\n").flatMap((line) => {
    const [, name, input] = COMMAND.exec(line.trim()) ?? [];
    return name === undefined ? [] : [{ name, input: input || "{}" }];
  });

/**
 * The command with the name of an offered tool. Names of servers may have spaces, and other characters
 * that names of functions do not have.
 */
export function offeredCommand(command: Command, tools: readonly string[]): Command {
  if (tools.includes(command.name)) return command;
  const [, written = "", input = "{}"] =
    /^([^{]*)(\{.*)?$/.exec(`${command.name} ${command.input}`) ?? [];
  const name = tools.find((each) => isFunctionOf(each, written.trim()));
  return name === undefined ? command : { name, input };
}

/** Undefined if the arguments are no JSON object. */
export function readCommand({ name, input }: Command): SandboxCall | undefined {
  try {
    const value = JSON.parse(input);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? { name, input: value } : undefined;
  } catch {
    // No JSON.
    return undefined;
  }
}
