import type { ModelMessage } from "../../rules/model-content.ts";
import { isFunctionOf } from "../../rules/tool-names.ts";

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

/** The results from this message on: those that the model is asked to go on with. */
export function newResults(messages: readonly ModelMessage[], from: number): SandboxResult[] {
  const calls = messages.flatMap(({ content }) =>
    content.filter((part) => part.type === "tool_use"),
  );
  const names = new Map(calls.map(({ id, name }) => [id, name]));
  return messages
    .slice(from)
    .flatMap(({ content }) => content.filter((part) => part.type === "tool_result"))
    .map(({ tool_use_id, content, is_error }) => ({
      tool: names.get(tool_use_id) ?? "",
      text: content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n\n"),
      failed: is_error,
    }));
}

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
