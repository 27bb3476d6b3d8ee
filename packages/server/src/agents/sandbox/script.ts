import { type ProviderError, providerErrors } from "../providers/provider-errors.ts";
import * as replies from "./replies.ts";
import { offeredCommand, readCommand, type SandboxCall, type SandboxRequest } from "./request.ts";

export interface AnswerScript {
  text: string;
  wordIntervalMs: number;
  /** Tool calls after the text. */
  calls: readonly SandboxCall[];
  /** `cut` breaks the connection after the text. */
  end: "stop" | "refused" | "cut";
}

/** How the sandbox answers a request: as a provider that fails with the error, or with a text. */
type Script = AnswerScript | { fail(): ProviderError };

const WORD_INTERVAL_MS = 18;
const SLOW_WORD_INTERVAL_MS = 300;

const answer = (text: string, wordIntervalMs = WORD_INTERVAL_MS): AnswerScript => ({
  text,
  wordIntervalMs,
  calls: [],
  end: "stop",
});

const callTools = (calls: readonly SandboxCall[]): Script => ({ ...answer(""), calls });

/** The script for each keyword. The first keyword in a message decides. */
const scripts: Record<string, (request: SandboxRequest) => Script> = {
  buy: ({ text }) => answer(orderFor(text)),
  alert: () => answer(replies.alert),
  form: () => answer(replies.form),
  long: () => answer(replies.long),
  slow: () => answer(replies.slow, SLOW_WORD_INTERVAL_MS),
  fail: ({ text }) => firstNamed(failScripts, text) ?? serverError,
  files: ({ files }) => answer(replies.files(files)),
  help: () => answer(replies.help),
};

const serverError: Script = { fail: () => providerErrors.unavailable(500) };

/** Further scripts for `fail`, by a second keyword. */
const failScripts: Record<string, Script> = {
  key: { fail: () => providerErrors.keyRejected(401) },
  rate: { fail: () => providerErrors.rateLimited(429, 1000) },
  context: { fail: () => providerErrors.contextTooLong(400) },
  refuse: { ...answer(""), end: "refused" },
  midway: { ...answer(replies.midway), end: "cut" },
};

/** Only the last message decides: what tools and files say never makes the sandbox call a tool. */
export function scriptFor(request: SandboxRequest): Script {
  if (request.results.length > 0) return answer(replies.toolResults(request.results));
  if (request.commands.length > 0) return toolScript(request);
  if (WHAT_TIME.test(request.text) && request.tools.includes(CLOCK)) {
    return callTools([{ name: CLOCK, input: {} }]);
  }
  const script = firstNamed(scripts, request.text);
  return script ? script(request) : answer(replies.greeting(request));
}

/** `buy`, a quantity, and a symbol: in capital letters unless it follows a quantity. */
const ORDER =
  /\bbuy\s+(?:(?<quantity>\d{1,9})(?:\s+(?:shares\s+of\s+)?(?<ordered>[a-z][a-z0-9]{0,9}(?:\.[a-z])?)\b)?|(?<symbol>(?-i:[A-Z][A-Z0-9]{0,9}(?:\.[A-Z])?))\b)/i;

function orderFor(text: string): string {
  const { quantity, ordered, symbol = ordered } = text.match(ORDER)?.groups ?? {};
  return replies.buy(symbol?.toUpperCase() ?? "AAPL", Number(quantity) || 10);
}

const CLOCK = "current_time";
const WHAT_TIME = /\bwhat time is it\b/i;

/** Makes the calls that a message asks for, or none if one of them is wrong. */
function toolScript({ commands: written, tools }: SandboxRequest): Script {
  const commands = written.map((command) => offeredCommand(command, tools));
  const unknown = commands.find(({ name }) => !tools.includes(name));
  if (unknown) return answer(replies.unknownTool(unknown.name, tools));
  const calls = commands.map(readCommand);
  const wrong = commands[calls.indexOf(undefined)];
  if (wrong) return answer(replies.wrongArguments(wrong.name));
  return callTools(calls.filter((call) => call !== undefined));
}

/** The entry whose name appears first in the text as a whole word. */
function firstNamed<T>(entries: Record<string, T>, text: string): T | undefined {
  const names = Object.keys(entries).join("|");
  const name = text.match(new RegExp(`\\b(${names})\\b`, "i"))?.[0].toLowerCase();
  return name === undefined ? undefined : entries[name];
}
