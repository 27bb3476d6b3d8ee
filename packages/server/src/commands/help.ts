import type { Command } from "./command.ts";
import { commands } from "./index.ts";
import { optionsOf } from "./parse.ts";

type Line = readonly [term: string, description: string];

export async function programHelp(): Promise<string> {
  return [
    "Parley: a chat backend in which people and AI agents take part in the same conversations.",
    "Usage: parley [command] [options]\nWithout a command, the server starts.",
    section("Commands", await summaries(commands)),
    section("Options", [
      ["-h, --help", "Show this help; after a command, the help of that command."],
      ["-V, --version", "Show the version."],
    ]),
    'All settings are environment variables, such as PORT and PARLEY_DATA. Commands need the same\nsettings as the server. Run "parley help <command>" for arguments, options and examples.\nExit codes: 0 success, 1 failure, 2 the command line was not understood.',
  ].join("\n\n");
}

/** The help of commands with the same first word. */
export async function nestedHelp(word: string, nested: typeof commands): Promise<string> {
  const usage = `Usage: parley ${word} <command> [options]`;
  return [usage, section("Commands", await summaries(nested))].join("\n\n");
}

export function commandHelp(command: Command, otherNames: readonly string[]): string {
  const { summary, details, examples } = command;
  const options: Line[] = Object.entries(optionsOf(command)).map(([name, option]) => [
    option.type === "string" ? `--${name} <${option.value ?? "value"}>` : `--${name}`,
    option.choices ? `${option.summary} One of: ${option.choices.join(", ")}.` : option.summary,
  ]);
  return [
    `Usage: parley ${usageOf(command)}`,
    [summary, details].filter(Boolean).join("\n"),
    section("Arguments", argumentLines(command)),
    section("Options", [...options, ["-h, --help", "Show this help."]]),
    section(
      "Examples",
      examples.map(({ line, summary }) => [`parley ${line}`.trim(), summary]),
    ),
    otherNames.length > 0 &&
      `Other names: ${otherNames.map((name) => `parley ${name}`).join(", ")}`,
  ]
    .filter(Boolean)
    .join("\n\n");
}

const argumentLines = ({ arguments: list = {} }: Command): Line[] =>
  Object.entries(list).map(([name, summary]) => [`<${name}>`, summary]);

function usageOf(command: Command): string {
  const required = Object.entries(command.options ?? {})
    .filter(([, option]) => option.required)
    .map(([name, { value = "value" }]) => `--${name} <${value}>`);
  const names = Object.keys(command.arguments ?? {}).map((name) => `<${name}>`);
  return [command.name, ...names, ...required, "[options]"].join(" ");
}

const summaries = (list: typeof commands): Promise<Line[]> =>
  Promise.all(list.map(async ({ load }) => load().then(({ name, summary }) => [name, summary])));

function section(title: string, lines: readonly Line[]): string {
  if (lines.length === 0) return "";
  const width = Math.max(...lines.map(([term]) => term.length));
  return [`${title}:`, ...lines.map(([term, on]) => `  ${term.padEnd(width)}  ${on}`)].join("\n");
}
