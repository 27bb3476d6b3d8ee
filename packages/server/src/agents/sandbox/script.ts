import * as replies from "./replies.ts";
import type { Asked } from "./request.ts";

export interface AnswerScript {
  kind: "answer";
  text: string;
  /** Milliseconds between words. */
  pace: number;
  /** `cut` breaks the connection after the text. */
  end: "complete" | "refused" | "cut";
}

export interface ErrorScript {
  kind: "error";
  status: number;
  type: string;
  message: string;
  /** Seconds. */
  retryAfter?: number;
}

/** What the sandbox does with a request. */
export type Script = AnswerScript | ErrorScript;

const quick = 18;
const slow = 300;

const answer = (text: string): Script => ({ kind: "answer", text, pace: quick, end: "complete" });

/** What each word shows. The first one in a message counts. */
const scripts: Record<string, (asked: Asked) => Script> = {
  buy: () => answer(replies.buy),
  alert: () => answer(replies.alert),
  form: () => answer(replies.form),
  long: () => answer(replies.long),
  slow: () => ({ kind: "answer", text: replies.slow, pace: slow, end: "complete" }),
  fail: ({ text }) => failure(text),
  help: () => answer(replies.help),
};

const serverError: Script = {
  kind: "error",
  status: 500,
  type: "api_error",
  message: "internal server error",
};

/** Other ways to fail, by a second word. */
const failures: Record<string, Script> = {
  key: { kind: "error", status: 401, type: "authentication_error", message: "invalid key" },
  rate: {
    kind: "error",
    status: 429,
    type: "rate_limit_error",
    message: "rate limit reached",
    retryAfter: 1,
  },
  context: {
    kind: "error",
    status: 400,
    type: "invalid_request_error",
    message: "prompt is too long: 300000 tokens > 200000 maximum",
  },
  refuse: { kind: "answer", text: "", pace: quick, end: "refused" },
  midway: { kind: "answer", text: replies.midway, pace: quick, end: "cut" },
};

export function scriptFor(asked: Asked): Script {
  const script = firstNamed(scripts, asked.text);
  return script ? script(asked) : answer(replies.greeting(asked.sender, asked.text));
}

const failure = (text: string): Script => firstNamed(failures, text) ?? serverError;

/** The entry whose name comes first in the text, as a word of its own. */
function firstNamed<T>(entries: Record<string, T>, text: string): T | undefined {
  const names = Object.keys(entries).join("|");
  const name = text.match(new RegExp(`\\b(${names})\\b`, "i"))?.[0].toLowerCase();
  return name === undefined ? undefined : entries[name];
}
