import type { Account, Message } from "@parley/protocol";

export interface ContextInput {
  readonly agent: Account;
  readonly owner: Account;
  readonly instructions: string | null;
  readonly conversation: { readonly kind: "direct" | "group"; readonly title: string | null };
  readonly participants: readonly Account[];
  /** The newest first. */
  readonly messages: readonly Message[];
  /** What the model takes in and gives out, together. */
  readonly context_tokens: number;
  readonly max_output_tokens: number;
}

export interface ModelContext {
  readonly system: string;
  /** Begins and ends with the user's side, and the two sides alternate, as providers demand. */
  readonly messages: { role: "user" | "assistant"; content: string }[];
  /** The messages that went in, oldest first. */
  readonly ids: string[];
  /** At least what the provider will count. */
  readonly input_tokens: number;
}

/** Participants of a large group named to the model. */
const NAMED_PARTICIPANTS = 50;
const TOKENS_PER_MESSAGE = 8;

/**
 * Tokens of a text at the most, without a tokenizer: English has some four bytes to a token, code
 * three; scripts outside ASCII up to two tokens to a character of three bytes.
 */
export function estimateTokens(text: string): number {
  let weight = 0;
  for (let place = 0; place < text.length; place++) {
    weight += text.charCodeAt(place) < 128 ? 1 : 6;
  }
  return Math.ceil(weight / 3) + TOKENS_PER_MESSAGE;
}

/** What the model sees: who it is, who is there, and as much of the conversation as fits, newest kept. */
export function modelContext(input: ContextInput): ModelContext {
  const system = systemText(input);
  let room = input.context_tokens - input.max_output_tokens - estimateTokens(system);
  let input_tokens = estimateTokens(system);
  const kept: Message[] = [];
  for (const message of input.messages) {
    if (!isSaid(message)) continue;
    const cost = estimateTokens(lineOf(message, input.agent));
    if (cost > room && kept.length > 0) break;
    room -= cost;
    input_tokens += cost;
    kept.unshift(message);
  }
  return {
    system,
    messages: alternating(kept, input.agent),
    ids: kept.map(({ id }) => id),
    input_tokens,
  };
}

/** A turn that failed before it said anything left only our own words about it. */
const isSaid = ({ content, turn }: Message) =>
  content !== "" && !(turn?.status === "failed" && turn.error?.message === content);

const lineOf = (message: Message, agent: Account) =>
  message.sender.username === agent.username
    ? message.content
    : `${message.sender.username}: ${message.content}`;

function alternating(messages: readonly Message[], agent: Account): ModelContext["messages"] {
  const turns: ModelContext["messages"] = [];
  for (const message of messages) {
    const role = message.sender.username === agent.username ? "assistant" : "user";
    const content = lineOf(message, agent);
    const last = turns.at(-1);
    if (last?.role === role) last.content += `\n\n${content}`;
    else turns.push({ role, content });
  }
  while (turns[0]?.role === "assistant") turns.shift();
  if (turns.at(-1)?.role !== "user") turns.push({ role: "user", content: "(Please answer.)" });
  return turns;
}

function systemText(input: ContextInput): string {
  const { agent, owner, conversation, participants, instructions } = input;
  const named = participants.slice(0, NAMED_PARTICIPANTS).map(describe).join(", ");
  const more = participants.length - NAMED_PARTICIPANTS;
  const place =
    conversation.kind === "direct"
      ? "a direct conversation"
      : `the group ${conversation.title === null ? "conversation" : `"${conversation.title}"`}`;
  const parts = [
    `You are ${agent.display_name} (@${agent.username}), an AI agent that belongs to ${describe(owner)}. You take part in ${place} on Parley, a messaging service for people and agents.`,
    `Participants: ${named}${more > 0 ? ` and ${more} more` : ""}.`,
    "Each line of the others begins with the username of whoever wrote it, then a colon. Do not begin your own answers so.",
    MARKUP,
  ];
  if (instructions) parts.push(`Instructions of your owner:\n${instructions}`);
  return parts.join("\n\n");
}

const describe = ({ username, display_name, kind }: Account) =>
  `${display_name} (@${username}${kind === "agent" ? ", an agent" : ""})`;

const MARKUP = `Write Markdown. Where it helps, you may use these elements, and no other HTML:
<card title="…">…</card>
<button action="token">Label</button>, where token is one of trade:buy:<symbol>:<quantity>, trade:sell:<symbol>:<quantity>, alert:<symbol>:<gt or lt>:<value>, modify:limit, cancel:<what>, dismiss:<what>
<form id="…"><input name="…" label="…" type="text|number|email|date" required><select name="…" label="…"><option>…</option></select></form>
Attributes are plain text, never addresses or script.`;
