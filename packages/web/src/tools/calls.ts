import type { ToolCall } from "@parley/protocol";
import { visibleText } from "./visible-text.ts";

/** The name of a tool for people. Not every server gives one. */
export const toolTitle = ({ title, name }: { title: string; name: string }) =>
  visibleText(title || name);

export const callTitle = ({ title, tool }: Pick<ToolCall, "title" | "tool">) =>
  toolTitle({ title, name: tool });

/** Whether the owner of the agent decides about the call, or had to. */
const isAsked = ({ status, decided_by }: ToolCall) =>
  status === "pending" || status === "expired" || decided_by !== null;

/** The calls that needed no approval. */
export const callsMade = (calls: readonly ToolCall[]) => calls.filter((call) => !isAsked(call));

/** The calls that needed approval: they end their message. */
export const callsAsked = (calls: readonly ToolCall[]) => calls.filter(isAsked);

/** Whether a call of the message is being made: its line shows that the agent is at work. */
export const isCalling = (calls: readonly ToolCall[]) =>
  calls.some(({ status }) => status === "running");

export const isPending = ({ status }: ToolCall) => status === "pending";

/** The call that a button of the server's approval card decides about; null for other buttons. */
export const decidedCall = (action: string): string | null =>
  /^call:([^:]+):(?:approve|reject)$/.exec(action)?.[1] ?? null;
