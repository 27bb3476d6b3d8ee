import type {
  TurnError,
  TurnErrorCode,
  TurnFacts,
  TurnParameters,
} from "../records/turn-errors.ts";

/** Who reads a sentence, and what stands beside it. */
interface Reader {
  /** The owner of the agent, who is addressed. */
  readonly isOwner: boolean;
  /** A button to repeat the turn takes the place of the advice to do so. */
  readonly hasRetry: boolean;
}

/** The sentence that everybody can read, and that is stored. */
const ANYBODY: Reader = { isOwner: false, hasRetry: false };

type Text = string | ((reader: Reader) => string);

const retry =
  (advice = "Try again."): Text =>
  ({ hasRetry }) =>
    hasRetry ? "" : advice;

const ownerCan =
  (advice: string, toOwner = advice): Text =>
  ({ isOwner }) =>
    isOwner ? `You can ${toOwner}.` : `Its owner can ${advice}.`;

const byReason =
  <Reason extends string>(texts: Record<Reason, Text[]>) =>
  ({ reason }: { reason: Reason }): Text[] =>
    texts[reason];

const NO_CREDIT =
  "The account behind this API key has no credit or quota left. Add some with the provider, or store another key.";

/** What happened, and what a person can do. */
const texts: {
  [Code in TurnErrorCode]: TurnParameters<Code> extends undefined
    ? Text[]
    : (parameters: TurnParameters<Code>) => Text[];
} = {
  // Names nobody: the sentence is stored, and the owner may be erased.
  key_missing: ["The owner of this agent has not set an API key for it yet."],
  key_rejected: byReason({
    rejected: [
      "The provider rejected the API key. Store a key that is valid and may use this model.",
    ],
    malformed: [
      "The stored API key contains characters that no provider accepts. Store the key again.",
    ],
    operator_key: [
      "The provider rejected this server's API key. Ask the operator to replace it, or store a key of your own.",
    ],
    sandbox_off: ["The sandbox is off here. Store a key of the provider's."],
  }),
  provider_rate_limited: byReason({
    requests: [
      "The provider is limiting requests with this API key. Wait a little, then try again.",
    ],
    no_credit: [NO_CREDIT],
  }),
  provider_unavailable: byReason({
    failing: ["The provider has a problem or is overloaded.", retry("Try again in a few minutes.")],
    unreachable: ["The connection to the provider failed.", retry("Try again in a few minutes.")],
    redirects: [
      "The provider's address redirects elsewhere, which is not followed. Ask the operator to correct it.",
    ],
    broken_answer: ["The provider's answer was broken off or unreadable.", retry()],
    empty_answer: ["The model ended its answer without any text.", retry()],
    answer_limit: [
      "The model reached the limit of its answer before it wrote any text.",
      retry("Try again, or ask for something simpler."),
    ],
    too_much_data: [
      "The provider sent far more data than was asked for and was cut off.",
      retry("Try again later."),
    ],
    not_offered: ["This agent's provider is no longer offered here."],
  }),
  provider_refused: byReason({
    no_credit: [NO_CREDIT],
    unknown_model: [
      "The provider does not know this agent's model. Choose another model for the agent.",
    ],
    request: ["The provider did not accept the request. Check the agent's model and instructions."],
    tools: [
      "This agent's model cannot use tools. Choose another model, or ask the operator to offer this provider without tools.",
    ],
    answer: ["The provider declined to answer this. Rephrase the message and try again."],
  }),
  context_too_long: byReason({
    conversation: [
      "The conversation is too long for this model. Start a new one, or choose a model with a larger context.",
    ],
    tool_results: [
      "What the tools returned does not fit into the model's context. Ask for less at once.",
    ],
  }),
  timeout: ["The provider took too long to answer.", retry("Try again in a moment.")],
  interrupted: byReason({
    restart: ["The answer was interrupted by a restart.", retry()],
    unavailable: ["The answer was interrupted.", retry()],
    program_gone: ["The program of this agent stopped answering.", retry()],
    message_deleted: ["The message was deleted before it was answered."],
    agent_deleted: ["This agent was deleted before it answered."],
  }),
  budget_exceeded: limitTexts,
  tool_limit: ({ max }) => [
    `This agent asked for more than ${max} tool calls in one answer, so it was stopped.`,
  ],
  agent_offline: byReason({
    not_connected: [
      "The program of this agent is not connected.",
      ownerCan("start it; then try again"),
    ],
    not_claiming: [
      "The program of this agent is connected, but takes no turns.",
      ownerCan("restart it; then try again"),
    ],
  }),
  agent_failed: byReason({
    failed: ["The program of this agent failed.", retry()],
    empty_answer: ["The program of this agent gave no answer.", retry()],
  }),
  agent_suspended: ["The account of this agent's owner is suspended."],
  internal: byReason({
    server: ["Something went wrong here.", retry()],
    sealed_key: ["The stored API key cannot be opened here. Store it again."],
  }),
};

function limitTexts(parameters: TurnParameters<"budget_exceeded">): Text[] {
  const { limit, max } = parameters;
  const budget = `This agent's budget of ${max} tokens a day`;
  switch (limit) {
    case "spenders":
      return ["Only this agent's owner may ask it: they pay for its answers."];
    case "turns_per_minute":
      return [`This agent may answer ${max} times a minute.`, retry("Try again in a minute.")];
    case "daily_tokens":
      return [`${budget} ${excess(parameters, "is used up")}.`, ownerCan("raise it")];
    case "chat_daily_tokens":
      return [
        `${budget} in this conversation ${excess(parameters, "is used up")}.`,
        ownerCan("raise it"),
      ];
    case "operator_daily_tokens":
      return [
        `${budget}, which this server pays for, ${excess(parameters, "is used up until midnight UTC")}.`,
        ownerCan("store an API key of their own", "store an API key of your own"),
      ];
  }
}

function excess({ needs }: TurnParameters<"budget_exceeded">, usedUp: string): string {
  if (!needs) return usedUp;
  const { of, tokens, left } = needs;
  return of === "files"
    ? `is too small for the files in this conversation, which need about ${tokens}: ${left} are left`
    : `is too small for this conversation, which needs about ${tokens}`;
}

/** The error with its sentence for people: what happened, and what they can do. */
export const turnError = (error: TurnFacts | TurnError): TurnError =>
  "message" in error ? error : ({ ...error, message: sentence(error, ANYBODY) } as TurnError);

/** The sentence for one reader. What cannot be derived is as the server has said it. */
export const turnSentence = (error: TurnError, reader: Reader): string =>
  sentence(error, reader) ?? error.message;

function sentence(error: TurnFacts | TurnError, reader: Reader): string | undefined {
  const { code, parameters }: { code: TurnErrorCode; parameters?: object } = error;
  type Known = Text[] | ((parameters: object) => Text[]);
  const known = texts[code] as Known | undefined;
  const said = typeof known === "function" ? parameters && known(parameters) : known;
  return said
    ?.map((text) => (typeof text === "string" ? text : text(reader)))
    .filter((text) => text !== "")
    .join(" ");
}
