import * as replies from "./replies.ts";
import type { SandboxRequest } from "./request.ts";

export interface AnswerScript {
  kind: "answer";
  text: string;
  wordIntervalMs: number;
  /** `cut` breaks the connection after the text. */
  end: "complete" | "refused" | "cut";
}

export interface ErrorScript {
  kind: "error";
  status: number;
  type: string;
  message: string;
  retryAfterSeconds?: number;
}

/** How the sandbox answers a request. */
export type Script = AnswerScript | ErrorScript;

const WORD_INTERVAL_MS = 18;
const SLOW_WORD_INTERVAL_MS = 300;

const answer = (text: string, wordIntervalMs = WORD_INTERVAL_MS): Script => ({
  kind: "answer",
  text,
  wordIntervalMs,
  end: "complete",
});

/** The script for each keyword. The first keyword in a message decides. */
const scripts: Record<string, (request: SandboxRequest) => Script> = {
  buy: () => answer(replies.buy),
  alert: () => answer(replies.alert),
  form: () => answer(replies.form),
  long: () => answer(replies.long),
  slow: () => answer(replies.slow, SLOW_WORD_INTERVAL_MS),
  fail: ({ text }) => firstNamed(failScripts, text) ?? serverError,
  files: ({ files }) => answer(replies.files(files)),
  help: () => answer(replies.help),
};

const serverError: Script = {
  kind: "error",
  status: 500,
  type: "api_error",
  message: "internal server error",
};

/** Further scripts for `fail`, by a second keyword. */
const failScripts: Record<string, Script> = {
  key: { kind: "error", status: 401, type: "authentication_error", message: "invalid key" },
  rate: {
    kind: "error",
    status: 429,
    type: "rate_limit_error",
    message: "rate limit reached",
    retryAfterSeconds: 1,
  },
  context: {
    kind: "error",
    status: 400,
    type: "invalid_request_error",
    message: "prompt is too long: 300000 tokens > 200000 maximum",
  },
  refuse: { kind: "answer", text: "", wordIntervalMs: WORD_INTERVAL_MS, end: "refused" },
  midway: { kind: "answer", text: replies.midway, wordIntervalMs: WORD_INTERVAL_MS, end: "cut" },
};

export function scriptFor(request: SandboxRequest): Script {
  const script = firstNamed(scripts, request.text);
  return script ? script(request) : answer(replies.greeting(request));
}

/** The entry whose name appears first in the text as a whole word. */
function firstNamed<T>(entries: Record<string, T>, text: string): T | undefined {
  const names = Object.keys(entries).join("|");
  const name = text.match(new RegExp(`\\b(${names})\\b`, "i"))?.[0].toLowerCase();
  return name === undefined ? undefined : entries[name];
}
