import type { CallFacts, LocalMessage } from "@parley/client";
import { formatSize } from "./format-size.ts";
import { count } from "./names.ts";

/** Why a message was not sent, in units for people. */
export function describeRefusal({ failure, refusal }: LocalMessage): string | undefined {
  if (!refusal) return failure;
  const why = describeFacts(refusal);
  return refusal.file === undefined ? why : `${refusal.file}: ${why}`;
}

/** Whether a message was not sent because the one that it answers was deleted. */
export const lacksReplyTarget = ({ refusal }: LocalMessage) =>
  refusal?.code === "not_found" && refusal.fields?.reply_to_id !== undefined;

/** Why a call failed, as a clause and without the name of the error code. */
export function describeFacts(facts: CallFacts): string {
  const { code, reason, retryAfter, maxBytes } = facts;
  if (code === "rate_limited") return `${excessOf(facts)}, try again ${inTime(retryAfter)}`;
  if (code === "payload_too_large" && maxBytes !== undefined)
    return `a file has at most ${formatSize(maxBytes)}`;
  return code === "not_found" ? describeMissing(facts) : reason;
}

/** What there was too much of. */
export const excessOf = ({ maxBytes }: CallFacts) =>
  maxBytes === undefined
    ? "too many attempts"
    : `more than ${formatSize(maxBytes)} of uploads a day`;

function describeMissing({ reason, names, fields = {} }: CallFacts): string {
  if (names) {
    const kind = names.every((name: string) => name.includes(":")) ? "agent" : "user";
    return `there is no ${kind} ${names.join(", ")}`;
  }
  const isFile = Object.keys(fields).some((path) => path.startsWith("file_id"));
  return `the ${isFile ? "file" : reason} was not found`;
}

export function inTime(seconds = 0): string {
  if (seconds < 2) return "in a moment";
  if (seconds < 90) return `in ${seconds} seconds`;
  const minutes = Math.ceil(seconds / 60);
  return `in ${minutes < 90 ? count(minutes, "minute") : count(Math.ceil(minutes / 60), "hour")}`;
}
