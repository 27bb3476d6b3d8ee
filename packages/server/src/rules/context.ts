import type { Account, File, Message } from "@parley/protocol";
import { isElicitation } from "./action-tokens.ts";
import { fileViews, type LoadedFile, type ViewFile } from "./context-files.ts";
import { joinRoles, type ModelMessage } from "./model-content.ts";
import { indentLines, quoteName } from "./quoting.ts";
import { namesText, type SystemTextInput, systemText } from "./system-text.ts";
import { estimateTokens } from "./token-estimate.ts";
import {
  type ContextCall,
  callMessages,
  callSummary,
  continuedMessages,
  ownText,
  partTokens,
} from "./tool-context.ts";

export interface ContextInput extends SystemTextInput {
  /** Newest first. */
  readonly messages: readonly Message[];
  /** The contents of files that are loaded, by id. */
  readonly files: ReadonlyMap<string, LoadedFile>;
  /** The message whose calls the turn continues; null if it continues none. */
  readonly continues: string | null;
  /** The calls of the continued messages, by message. */
  readonly calls: ReadonlyMap<string, readonly ContextCall[]>;
  /** Estimated, of the tools that the model may use. */
  readonly tool_tokens: number;
  /** The model's limit for input and output together. */
  readonly context_tokens: number;
  readonly max_output_tokens: number;
}

export interface ModelContext {
  readonly system: string;
  /** Starts and ends with a user message, and the roles alternate, as providers require. */
  readonly messages: readonly ModelMessage[];
  /** The ids of the messages in the context, oldest first. */
  readonly ids: string[];
  /** Whether the newest message is from someone other than the agent. */
  readonly isAsked: boolean;
  /** Files whose content the model should see, and which are not loaded. It is told so. */
  readonly unloaded: readonly File[];
  /** An estimate that aims high. */
  readonly input_tokens: number;
  /** The part of it that is for the contents of files. */
  readonly file_tokens: number;
}

/** The share of the room that is left for the results of tools, which come while the model answers. */
const RESULT_SHARE = 0.25;

/** Builds the request of a turn: the system text and the newest messages that fit. */
export function modelContext(input: ContextInput): ModelContext {
  const system = systemText(input, {
    hasFiles: input.messages.some(({ files }) => files.length > 0),
    hasTools: input.tool_tokens > 0,
  });
  const names = namesText(input);
  const fixedTokens = estimateTokens(`${system}${names}${PROMPT_TO_ANSWER}`) + input.tool_tokens;
  const room = input.context_tokens - input.max_output_tokens - fixedTokens;
  const kept = newestThatFit(input, input.tool_tokens > 0 ? room * (1 - RESULT_SHARE) : room);
  return {
    system,
    messages: alternateRoles(names, kept),
    ids: kept.map(({ id }) => id),
    isAsked: kept.at(-1)?.isOwn === false,
    unloaded: kept.flatMap(({ unloaded }) => unloaded),
    input_tokens: kept.reduce((sum, { tokens }) => sum + tokens, fixedTokens),
    file_tokens: kept.reduce((sum, { file_tokens }) => sum + file_tokens, 0),
  };
}

/** A message as the model reads it. */
interface ContextMessage {
  readonly id: string;
  readonly isOwn: boolean;
  readonly messages: readonly ModelMessage[];
  readonly tokens: number;
  /** The part of the tokens that is for the contents of files. */
  readonly file_tokens: number;
  readonly unloaded: readonly File[];
}

/** The newest messages within the token limit, oldest first. The newest one is always included. */
function newestThatFit(input: ContextInput, maxTokens: number): ContextMessage[] {
  const kept: ContextMessage[] = [];
  let tokensLeft = maxTokens;
  const viewFile = fileViews(input.messages, input.files);
  const continued = continuedMessages(input.messages, input.continues);
  for (const message of inDialogueOrder(input).toReversed()) {
    if (!hasContent(message)) continue;
    const encoded = isOwn(message, input.agent)
      ? encodeOwn(message, continued.has(message.id) ? input.calls.get(message.id) : undefined)
      : encodeOther(message, viewFile, tokensLeft);
    tokensLeft -= encoded.tokens;
    if (tokensLeft < 0 && kept.length > 0) break;
    kept.unshift(encoded);
  }
  const first = kept.findIndex(({ isOwn }) => !isOwn);
  return first < 0 ? [] : kept.slice(first);
}

/**
 * Oldest first, with each answer of the agent right after the message that it answers: the agent
 * had not seen the messages in between.
 */
function inDialogueOrder({ messages, agent }: ContextInput): Message[] {
  const oldestFirst = messages.toReversed();
  const ids = new Set(oldestFirst.map(({ id }) => id));
  const triggerOf = ({ sender, turn }: Message) =>
    sender.username === agent.username && turn && ids.has(turn.triggered_by)
      ? turn.triggered_by
      : null;
  const answers = Map.groupBy(oldestFirst, triggerOf);
  return oldestFirst
    .filter((message) => triggerOf(message) === null)
    .flatMap((message) => [message, ...(answers.get(message.id) ?? [])]);
}

/** The content of a turn that failed before any text is our error message, not the agent's text. */
const hasContent = ({ sender, content, turn, files, tool_calls }: Message) =>
  tool_calls.length > 0 ||
  (!(sender.kind === "agent" && turn === null && isElicitation(content)) &&
    (content.trim() !== "" || files.length > 0) &&
    !(turn?.status === "failed" && turn.error?.message === content));

/**
 * The reply to a component action is labelled as the person's action, not as the agent's text, unless
 * it asked for a tool.
 */
const isOwn = ({ sender, action, tool_calls }: Message, agent: Account) =>
  sender.username === agent.username && (action === null || tool_calls.length > 0);

/** With `calls` the message is continued: the model sees what it asked for, and the results. */
function encodeOwn(message: Message, calls: readonly ContextCall[] | undefined): ContextMessage {
  const messages = [
    ...actionMessages(message),
    ...(calls ? callMessages(message, calls) : summarised(message)),
  ];
  return {
    id: message.id,
    isOwn: true,
    messages,
    tokens: partTokens(messages),
    file_tokens: 0,
    unloaded: [],
  };
}

function summarised(message: Message): ModelMessage[] {
  const text = ownText(message);
  return [
    ...(text.trim() === "" ? [] : [textMessage("assistant", text)]),
    ...(message.tool_calls.length === 0 ? [] : [textMessage("user", callSummary(message))]),
  ];
}

/** Files whose content would take more tokens than are left are only named. */
function encodeOther(message: Message, viewFile: ViewFile, maxTokens: number): ContextMessage {
  const label = (message.action ? message.action.by : message.sender).username;
  const action = message.action ? describeAction(message.action) : "";
  const text = [action, message.content].filter((each) => each.trim() !== "");
  let tokens = estimateTokens(`${label}: ${indentLines(text.join("\n"))}`);
  const views = message.files.map((file) => {
    const view = viewFile(file, maxTokens - tokens);
    tokens += view.tokens;
    return { file, ...view };
  });
  const lines = [...text, ...views.map(({ line }) => line)];
  return {
    id: message.id,
    isOwn: false,
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: `${label}: ${indentLines(lines.join("\n"))}` },
          ...views.flatMap(({ parts }) => parts),
        ],
      },
    ],
    tokens,
    file_tokens: views
      .filter(({ parts }) => parts.length > 0)
      .reduce((sum, view) => sum + view.tokens, 0),
    unloaded: views.filter(({ isUnloaded }) => isUnloaded).map(({ file }) => file),
  };
}

/** Tells the model who asked for a tool with a component. */
const actionMessages = ({ action }: Message): ModelMessage[] =>
  action ? [textMessage("user", `${action.by.username}: ${describeAction(action)}`)] : [];

function describeAction({ label, token }: NonNullable<Message["action"]>): string {
  const used = label === null ? "a component" : `the button ${quoteName(label)}`;
  return `(used ${used} with the action ${quoteName(token)}; the service confirmed it:)`;
}

/** Sent after a last message of the agent: providers require a user message at the end. */
const PROMPT_TO_ANSWER = "(Please answer.)";

const textMessage = (role: ModelMessage["role"], text: string): ModelMessage => ({
  role,
  content: [{ type: "text", text }],
});

/** Begins with the names and ends with a message of the user. */
function alternateRoles(names: string, kept: readonly ContextMessage[]): ModelMessage[] {
  if (kept.length === 0) return [textMessage("user", `${names}\n\n${PROMPT_TO_ANSWER}`)];
  const messages = joinRoles([
    textMessage("user", names),
    ...kept.flatMap((each) => each.messages),
  ]);
  if (messages.at(-1)?.role !== "user") messages.push(textMessage("user", PROMPT_TO_ANSWER));
  return messages;
}
