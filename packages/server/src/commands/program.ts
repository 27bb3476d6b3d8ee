import { VERSION } from "../observe/version.ts";
import { suggestion } from "../rules/similar-names.ts";
import { type Command, type Result, UsageError } from "./command.ts";
import { commandHelp, nestedHelp, programHelp } from "./help.ts";
import { commands, DEFAULT_COMMAND } from "./index.ts";
import { failWith, print, printError, progressOn } from "./output.ts";
import { parseCommandLine } from "./parse.ts";

/** Runs the command line. Exit codes: 0 success, 1 failure, 2 not understood. */
export async function runProgram(args: readonly string[]): Promise<void> {
  process.stdout.on("error", ignoreClosedPipe);
  try {
    await run(args);
  } catch (error) {
    if (!(error instanceof UsageError)) failWith(error);
    const help = ["parley", "help", error.about].filter(Boolean).join(" ");
    printError(`${error.message}\nRun "${help}" to see what is possible.`);
    process.exit(2);
  }
}

/** The reader of the output may stop early, as in `parley users list | head`. */
function ignoreClosedPipe(error: NodeJS.ErrnoException): void {
  if (error.code !== "EPIPE") failWith(error);
}

async function run(args: readonly string[]): Promise<void> {
  const [first = ""] = args;
  if (first === "--version" || first === "-V") return print(`parley ${VERSION}`);
  if (first === "--help" || first === "-h") return print(await programHelp());
  if (first === "help") return print(await helpFor(args.slice(1)));
  const { listed, rest } = find(args);
  if (!listed || isHelp(rest)) return print(await helpFor(args.filter((word) => word[0] !== "-")));
  await runCommand(await listed.load(), rest);
}

async function runCommand(command: Command, args: readonly string[]): Promise<void> {
  const { json, ...input } = parseCommandLine(command, args);
  const progress = progressOn(process.stderr);
  try {
    const result = await command.run({
      ...input,
      print: (line) => {
        progress.clear();
        if (json) printError(line);
        else print(line);
      },
      progress: progress.show,
    });
    progress.clear();
    if (result) printResult(result, json);
  } finally {
    progress.clear();
  }
}

function printResult({ json, text, exitCode = 0 }: Result, asJson: boolean): void {
  if (asJson) print(JSON.stringify(json));
  // A program that reads the entries finds none.
  else if (text === "") printError("none");
  else if (text !== null) print(text);
  process.exitCode = exitCode;
}

/** The command that the first words name, and the arguments after them. Null for `keys --help`. */
function find(args: readonly string[]) {
  const [first = "", second = ""] = args;
  if (first === "" || first.startsWith("-")) return { listed: byName(DEFAULT_COMMAND), rest: args };
  const nested = byName(`${first} ${second}`);
  if (nested) return { listed: nested, rest: args.slice(2) };
  const listed = byName(first);
  if (listed) return { listed, rest: args.slice(1) };
  if (nestedIn(first).length > 0 && isHelp(args.slice(1))) return { listed: null, rest: [] };
  throw unknownCommand(args);
}

const byName = (name: string) => commands.find(({ names }) => names.includes(name)) ?? null;

const nestedIn = (word: string) =>
  commands.filter(({ names }) => names.some((name) => name.startsWith(`${word} `)));

const isHelp = (args: readonly string[]) =>
  args.slice(0, args.includes("--") ? args.indexOf("--") : args.length).some(isHelpOption);

const isHelpOption = (word: string) => word === "--help" || word === "-h";

async function helpFor(words: readonly string[]): Promise<string> {
  const [first, second = ""] = words;
  if (first === undefined) return programHelp();
  const listed = byName(`${first} ${second}`) ?? byName(first);
  if (listed) return commandHelp(await listed.load(), listed.names.slice(1));
  const nested = nestedIn(first);
  if (nested.length > 0 && second === "") return nestedHelp(first, nested);
  throw unknownCommand(words);
}

function unknownCommand(args: readonly string[]): UsageError {
  const [first = "", second = ""] = args.filter((word) => !word.startsWith("-"));
  const hasNested = nestedIn(first).length > 0;
  if (hasNested && second === "") {
    return new UsageError(`"parley ${first}" needs a command.`, first);
  }
  const given = hasNested ? `${first} ${second}` : first;
  const all = commands.flatMap((listed) => listed.names);
  const names = hasNested ? all : all.flatMap((name) => [name, name.replace(/ .*/, "")]);
  return new UsageError(
    `Unknown command "${given}".${suggestion(given, names)}`,
    hasNested ? first : "",
  );
}
