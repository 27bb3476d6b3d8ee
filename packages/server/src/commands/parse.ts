import { parseArgs } from "node:util";
import { suggestion } from "../rules/similar-names.ts";
import { type Command, type OptionList, UsageError } from "./command.ts";

const JSON_OPTION = { type: "boolean", summary: "Print the result as one JSON object." } as const;

export const optionsOf = ({ options = {}, json }: Command): OptionList =>
  json === false ? options : { ...options, json: JSON_OPTION };

/** The arguments and options of a command line, checked against the declaration of the command. */
export function parseCommandLine(command: Command, args: readonly string[]) {
  const { values, positionals } = parse(command, args);
  const { json = false, ...options } = values;
  for (const [name, option] of Object.entries(command.options ?? {})) {
    const value = options[name];
    if (value === undefined && option.type === "boolean") options[name] = false;
    if (value === undefined && option.required) {
      throw new UsageError(`Option --${name} is missing.`, command.name);
    }
    if (typeof value === "string" && option.choices?.includes(value) === false) {
      const allowed = option.choices.join(" or ");
      throw new UsageError(`Option --${name} must be ${allowed}, not "${value}".`, command.name);
    }
  }
  return {
    arguments: readArguments(command, positionals),
    // The loop above made the values what the declaration says.
    options: options as Record<string, never>,
    json: json === true,
  };
}

function parse(command: Command, args: readonly string[]) {
  const options = optionsOf(command);
  const types = Object.entries(options).map(([name, { type }]) => [name, { type }] as const);
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      options: Object.fromEntries(types),
      allowPositionals: true,
    });
    return { values: { ...values }, positionals };
  } catch (error) {
    throw new UsageError(optionProblem(args, options, error), command.name);
  }
}

/** What is wrong with the options, in the words of this program. */
function optionProblem(args: readonly string[], options: OptionList, error: unknown): string {
  const known = Object.keys(options).map((name) => `--${name}`);
  const given = args.filter((word) => word.startsWith("-")).map((word) => word.split("=")[0] ?? "");
  const unknown = given.find((word) => !known.includes(word));
  if (unknown) return `Unknown option ${unknown}.${suggestion(unknown, known)}`;
  return error instanceof Error ? (error.message.split(/[.\n]/)[0] ?? "") : String(error);
}

function readArguments(command: Command, given: readonly string[]): Record<string, string> {
  const names = Object.keys(command.arguments ?? {});
  const extra = given[names.length];
  if (extra !== undefined) throw new UsageError(`Unexpected argument "${extra}".`, command.name);
  const entries = names.map((name, index) => {
    const value = given[index];
    if (!value) throw new UsageError(`The argument <${name}> is missing.`, command.name);
    return [name, value] as const;
  });
  return Object.fromEntries(entries);
}
