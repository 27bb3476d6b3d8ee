import type { LocalMessage } from "@parley/client";
import { formatSize } from "../files/describe.ts";
import { count } from "./names.ts";

const HOUR_S = 3600;

/** Why a message was not sent, without the name of the error code and in units for people. */
export const describeFailure = (failure: string) =>
  withoutCodeWords(failure)
    .replace(/\b(\d{4,}) bytes\b/g, (_, bytes) => formatSize(Number(bytes)))
    .replace(
      /\bin (\d{4,}) s$/,
      (_, seconds) => `in ${count(Math.ceil(seconds / HOUR_S), "hour")}`,
    );

/** Whether a message was not sent because the one that it answers was deleted. */
export const lacksReplyTarget = ({ reply_to_id, failure }: LocalMessage) =>
  reply_to_id !== null && failure === "not found: message";

/** The kind of an error, as the server puts it before a sentence that says enough without it. */
const KIND =
  /\b(?:bad request|unauthorized|second factor required|confirmation required|forbidden|conflict|payload too large|unsupported media type|rate limited|unavailable): /;

/** What the server says about an error, without the name of the error code. */
export const withoutCodeWords = (text: string) =>
  text.replace(/\bnot found: (.+)$/, (_, thing) => describeMissing(thing)).replace(KIND, "");

const describeMissing = (thing: string) =>
  /^(?:users?|agent|participant) /.test(thing)
    ? `there is no ${thing.replace(/^users/, "user")}`
    : `the ${thing.replace(/^(?:the|an) /, "").replace(/^file .+/, "file")} was not found`;
