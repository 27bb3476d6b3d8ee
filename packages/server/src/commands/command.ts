/** One command of the `parley` program, as `commands/index.ts` lists it and `parley help` shows it. */
export interface Command<
  Arguments extends ArgumentList = ArgumentList,
  Options extends OptionList = OptionList,
> {
  /** The words after `parley`, such as `keys rotate`. */
  readonly name: string;
  /** One sentence for the list of commands. */
  readonly summary: string;
  /** More for the help of this command: what it needs, what it changes, what to do next. */
  readonly details?: string;
  /** Arguments in their order, each with its description. All are required. */
  readonly arguments?: Arguments;
  readonly options?: Options;
  readonly examples: readonly Example[];
  /** False if it has no result. Otherwise it accepts `--json`. */
  readonly json?: false;
  run(input: Input<Arguments, Options>): Promise<Result | null>;
}

export type ArgumentList = Readonly<Record<string, string>>;
export type OptionList = Readonly<Record<string, Option>>;

export interface Option {
  readonly type: "boolean" | "string";
  readonly summary: string;
  /** The name of the value in the help, for an option of type `string`. */
  readonly value?: string;
  /** The values that are allowed. Default: any. */
  readonly choices?: readonly string[];
  readonly required?: boolean;
}

export interface Example {
  /** The words after `parley`. */
  readonly line: string;
  readonly summary: string;
}

export interface Input<Arguments extends ArgumentList, Options extends OptionList> {
  readonly arguments: { readonly [Name in keyof Arguments]: string };
  readonly options: { readonly [Name in keyof Options]: OptionValue<Options[Name]> };
  /** Prints a line for people: to standard output, with `--json` to standard error. */
  print(line: string): void;
  /** Shows how far long work has come, on standard error. Each text replaces the one before. */
  progress(text: string): void;
}

type OptionValue<Each extends Option> = Each["type"] extends "boolean"
  ? boolean
  : Each["required"] extends true
    ? string
    : string | undefined;

/** What a command found or did. The program prints `json` with `--json`, otherwise `text`. */
export interface Result {
  readonly json: object;
  /** Without a final newline. Empty: a list without entries. Null: nothing is printed. */
  readonly text: string | null;
  /** 1 if what the command checked is wrong. Default: 0. */
  readonly exitCode?: 0 | 1;
}

/** Declares a command; the types of its arguments and options follow from the declaration. */
export const command = <
  const Arguments extends ArgumentList = Record<never, string>,
  const Options extends OptionList = Record<never, Option>,
>(
  declaration: Command<Arguments, Options>,
): Command => declaration;

/** A command line that cannot be understood: exit code 2. The message says what is wrong. */
export class UsageError extends Error {
  /** The words after `parley help` whose help has the answer. Empty: the help of the program. */
  readonly about: string;

  constructor(message: string, about = "") {
    super(message);
    this.about = about;
  }
}
