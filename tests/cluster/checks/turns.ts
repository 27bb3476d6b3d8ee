import type { Message } from "@parley/protocol";
import type { FinalChat, FinalState, Tokens, Violation } from "../final-state.ts";
import { isOf, type Operation } from "../history.ts";

/** Every turn has ended, and every question has exactly one answer. */
export function checkTurns(
  history: readonly Operation[],
  { chats, answer }: FinalState,
): Violation[] {
  const asked = history.filter(isOf("send")).filter(({ asks }) => asks);
  return chats.flatMap((chat) => {
    const answers = chat.messages.filter(({ sender }) => sender.kind === "agent");
    return [
      ...answers.flatMap((message) => checkAnswer(message, answer)),
      ...repeated(answers),
      ...unanswered(asked, chat, answers),
    ];
  });
}

function checkAnswer({ id, content, turn, finalized_at }: Message, answer: string): Violation[] {
  const violation = (what: string) => [{ what: `${what}: ${id} «${content}»`, operations: [] }];
  if (finalized_at === null || !turn) return violation("a turn is not finished");
  const { status, error } = turn;
  if (status === "complete" && content !== answer)
    return violation("a complete turn lacks content");
  if (status === "failed" && error?.code !== "interrupted") {
    return violation(`a turn failed with ${error?.code}`);
  }
  const isSentence = status === "failed" && content === error?.message;
  if (isSentence || answer.startsWith(content)) return [];
  return violation("an answer has content that the model did not send");
}

function repeated(answers: readonly Message[]): Violation[] {
  const byTrigger = Map.groupBy(
    answers,
    ({ sender, turn }) => `${sender.username} answers ${turn?.triggered_by}`,
  );
  return [...byTrigger]
    .filter(([, same]) => same.length > 1)
    .map(([which]) => ({ what: `${which} more than once`, operations: [] }));
}

/** Questions that wait at the same time may share one answer, to the latest of them. */
function unanswered(
  asked: readonly Operation<"send">[],
  { id, messages }: FinalChat,
  answers: readonly Message[],
): Violation[] {
  const seqs = new Map(messages.map((message) => [message.id, message.seq]));
  const latest = (agent: string) =>
    Math.max(
      0,
      ...answers
        .filter(({ sender }) => sender.username === agent)
        .map(({ turn }) => seqs.get(turn?.triggered_by ?? "") ?? 0),
    );
  const keys = new Map(messages.map((message) => [message.client_msg_id, message]));
  return asked
    .filter(({ chat }) => chat === id)
    .flatMap((ask) => {
      const message = keys.get(ask.key);
      const agents = message?.mentions.filter((name) => name.includes(":")) ?? [];
      const missing = agents.filter((agent) => latest(agent) < (message?.seq ?? 0));
      return missing.map((agent) => ({ what: `${agent} has not answered`, operations: [ask] }));
    });
}

/** The total usage equals the sum of the receipts. */
export function checkUsage(
  _: readonly Operation[],
  { receipts, usage }: Pick<FinalState, "receipts" | "usage">,
): Violation[] {
  const charged = {
    turns: sum(usage, ({ turns }) => turns),
    failures: sum(usage, ({ failures }) => failures),
    ...tokens(usage),
  };
  const owed = {
    turns: receipts.length,
    failures: receipts.filter(({ status }) => status === "failed").length,
    ...tokens(receipts.flatMap((receipt) => receipt.usage ?? [])),
  };
  if (Bun.deepEquals(charged, owed)) return [];
  const what = `receipts say ${JSON.stringify(owed)}, and ${JSON.stringify(charged)} was charged`;
  return [{ what, operations: [] }];
}

const tokens = (used: readonly Tokens[]): Tokens => ({
  input_tokens: sum(used, ({ input_tokens }) => input_tokens),
  output_tokens: sum(used, ({ output_tokens }) => output_tokens),
});

const sum = <Item>(items: readonly Item[], figure: (item: Item) => number) =>
  items.reduce((total, item) => total + figure(item), 0);
