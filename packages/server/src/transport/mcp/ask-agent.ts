import {
  type ConversationDetail,
  type InputOf,
  type Message,
  type OperationName,
  type OutputOf,
  operations,
} from "@parley/protocol";
import { mentionedHandles } from "@parley/protocol/markup";
import { z } from "zod";
import { createInputParser } from "../../calls/input.ts";
import { badField, Failure } from "../../rules/failure.ts";
import type { Caller } from "../../security/caller.ts";
import type { Answers, FollowedAnswers } from "./answers.ts";

/** Most MCP clients give a call one minute. */
const DEFAULT_WAIT_SECONDS = 50;
/** The server closes connections that are silent for two minutes. */
const MAX_WAIT_SECONDS = 100;

const seconds = z.int().min(1).max(MAX_WAIT_SECONDS);
const { chat_id } = operations.getChat.input.shape;
const { agent_username } = operations.addGroupAgent.input.shape;

export const AskAgentInput = z.object({
  text: operations.sendMessage.input.shape.content.unwrap().meta({
    description: "The question, sent as a message of the caller. Markdown.",
  }),
  agent_username: agent_username.optional().meta({
    description:
      "The agent to ask, `<owner>:<name>`. Without `chat_id` it must be the caller's own, and is asked in their latest direct conversation. Default: the only agent of the conversation, or the only one that the text mentions.",
  }),
  chat_id: chat_id.optional().meta({
    description: "The conversation to ask in. Default: the direct conversation with the agent.",
  }),
  wait_seconds: seconds.optional().meta({
    description: `How long to wait for the answer. Default ${DEFAULT_WAIT_SECONDS}.`,
  }),
});
const parseInput = createInputParser(AskAgentInput);

/** Calls an operation for the caller. Throws the failure of the call. */
export type CallOperation = <Name extends OperationName>(
  name: Name,
  input: InputOf<Name>,
) => Promise<OutputOf<Name>>;

export interface Asking {
  readonly call: CallOperation;
  readonly caller: Caller;
  readonly answers: Answers;
  /** Aborted when the client is gone or the server stops. */
  readonly signal: AbortSignal;
}

export interface Asked {
  /** `waiting`: there is no answer yet. `approval_pending`: the agent's owner must decide. */
  readonly status: "complete" | "stopped" | "failed" | "approval_pending" | "waiting";
  readonly agent_username: string;
  readonly question: Message;
  readonly answer: Message | null;
}

/** Sends a message to an agent, and waits for the end of the turn that answers it. */
export async function askAgent(asking: Asking, raw: unknown): Promise<Asked> {
  const { call, caller, answers, signal } = asking;
  const input = parseInput(raw);
  const chatId = input.chat_id ?? (await directChat(call, input.agent_username));
  const chat = await call("getChat", { chat_id: chatId });
  const agent = agentIn(chat, input);
  using followed = await answers.follow(caller, chatId);
  const { seq } = await call("getChat", { chat_id: chatId });
  followed.begin(seq);
  const content = contentFor(chat, agent, input.text);
  const question = await call("sendMessage", { chat_id: chatId, content });
  const seconds = input.wait_seconds ?? DEFAULT_WAIT_SECONDS;
  const timeout = AbortSignal.timeout(seconds * 1000);
  const until = AbortSignal.any([signal, timeout]);
  const asked = { agent_username: agent, question };
  try {
    const answer = await answerTo(question, agent, followed, call, until);
    return { status: statusOf(answer), ...asked, answer };
  } catch (error) {
    if (!timeout.aborted || signal.aborted) throw error;
    return { status: "waiting", ...asked, answer: null };
  }
}

/** The caller's direct conversation with an agent of their own. */
async function directChat(call: CallOperation, agent: string | undefined): Promise<string> {
  if (agent === undefined) throw badField("agent_username", "is required, or chat_id");
  const { kind } = await call("getUser", { username: agent });
  if (kind !== "agent") throw badField("agent_username", "is not an agent");
  const { id } = await call("startChat", { usernames: [agent], kind: "direct" });
  return id;
}

/** The agent that is asked in a conversation. */
function agentIn({ participants }: ConversationDetail, input: z.output<typeof AskAgentInput>) {
  const agents = participants.filter(({ kind }) => kind === "agent");
  const named = input.agent_username;
  const mentioned = mentionedHandles(input.text);
  const candidates =
    named === undefined && agents.length > 1
      ? agents.filter(({ username }) => mentioned.includes(username))
      : agents.filter(({ username }) => named === undefined || username === named);
  const [agent, ...others] = candidates;
  if (agent && others.length === 0) return agent.username;
  if (agents.length === 0) throw badField("chat_id", "is a conversation without agents");
  const problem =
    named === undefined ? "is required: there are several agents" : "is not in this conversation";
  throw badField("agent_username", problem);
}

/** In a group, agents answer messages that mention them. */
const contentFor = ({ kind }: ConversationDetail, agent: string, text: string) =>
  kind === "direct" || mentionedHandles(text).includes(agent) ? text : `@${agent} ${text}`;

/** The agent's answer to a message, once it has ended. */
async function answerTo(
  question: Message,
  agent: string,
  followed: FollowedAnswers,
  call: CallOperation,
  signal: AbortSignal,
): Promise<Message> {
  for (;;) {
    const { id, sender, turn } = await followed.next(signal);
    if (sender.username !== agent || !turn) continue;
    // A later turn answers all messages before its trigger. Null: the trigger was deleted since.
    const trigger =
      turn.triggered_by === question.id
        ? question
        : await call("getMessage", { message_id: turn.triggered_by }).catch(nullIfMissing);
    // Read again: the caller may have left the conversation since.
    if (trigger && trigger.seq >= question.seq) return call("getMessage", { message_id: id });
  }
}

function nullIfMissing(error: unknown): null {
  if (error instanceof Failure && error.code === "not_found") return null;
  throw error;
}

function statusOf({ turn, tool_calls }: Message): Asked["status"] {
  if (tool_calls.some(({ status }) => status === "pending")) return "approval_pending";
  return turn?.status === "stopped" || turn?.status === "failed" ? turn.status : "complete";
}
