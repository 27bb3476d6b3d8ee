import { z } from "zod";
import { timestamp } from "../text/fields.ts";

const message = z.string().meta({ description: "A sentence for people." });

/** An error whose code says everything. */
const plain = <const Code extends string>(code: Code) =>
  z.object({ code: z.literal(code), message });

const withParameters = <const Code extends string, Shape extends z.core.$ZodLooseShape>(
  code: Code,
  shape: Shape,
) => z.object({ code: z.literal(code), message, parameters: z.object(shape).exactOptional() });

/** An error with one of several reasons, each with a sentence of its own. */
const withReason = <const Code extends string, const Reason extends string>(
  code: Code,
  reasons: Readonly<Record<Reason, string>>,
) => {
  const names = Object.keys(reasons) as Reason[];
  const description = names.map((name) => `\`${name}\`: ${reasons[name]}.`).join(" ");
  return withParameters(code, { reason: z.enum(names).meta({ description }) });
};

/**
 * Why a turn failed, for programs. The `message` is derived from the code and the parameters
 * (`text/turn-sentences.ts`). Parameters are missing if only the message is known: in turns that an
 * earlier version stored, and where a program says why it failed.
 */
export const TurnError = z
  .discriminatedUnion("code", [
    plain("key_missing"),
    withReason("key_rejected", {
      rejected: "by the provider; the owner stores another key",
      malformed: "no provider accepts such a key; the owner stores it again",
      operator_key: "by the provider, and it is the operator's; only the operator can replace it",
      sandbox_off: "the key is one of the sandbox, which the operator has turned off",
    }),
    withReason("provider_rate_limited", {
      requests: "too many with this key; later ones may succeed",
      no_credit: "the account of the key has no quota left; its owner adds some",
    }),
    withReason("provider_unavailable", {
      failing: "it reports a problem of its own, or that it is overloaded",
      unreachable: "the connection failed",
      redirects: "its address redirects; the operator corrects it",
      broken_answer: "the answer broke off or was unreadable",
      empty_answer: "the answer had no text",
      answer_limit: "the answer had no text when it reached its limit",
      too_much_data: "it sent far more than was asked for",
      not_offered: "the operator no longer offers it",
    }),
    withReason("provider_refused", {
      no_credit: "the account of the key has no credit left; its owner adds some",
      unknown_model: "the owner chooses another model",
      request: "the model or the instructions of the agent may be the reason",
      tools: "the model cannot use tools",
      answer: "the provider declined to answer this message",
    }),
    withReason("context_too_long", {
      conversation: "it does not fit into the model's context",
      tool_results: "what the tools returned does not fit",
    }),
    plain("timeout"),
    withReason("interrupted", {
      restart: "the server stopped while it answered",
      unavailable: "the server's database did not answer",
      program_gone: "the program of an external agent stopped answering",
      message_deleted: "the message to answer is gone; there is nothing to repeat",
      agent_deleted: "there is nothing to repeat",
    }),
    withParameters("budget_exceeded", {
      limit: z
        .enum([
          "spenders",
          "turns_per_minute",
          "daily_tokens",
          "chat_daily_tokens",
          "operator_daily_tokens",
        ])
        .meta({
          description:
            "The limit of the agent, by its name in `setAgentLimits`, or what the operator pays for all agents of the owner.",
        }),
      changed_by: z.enum(["owner", "operator"]).meta({ description: "Who can change the limit." }),
      max: z
        .int()
        .exactOptional()
        .meta({ description: "The value of the limit; missing for `spenders`." }),
      retry_at: timestamp.exactOptional().meta({
        description:
          "When the limit allows the turn again, if nothing else is spent; missing if it never does.",
      }),
      needs: z
        .object({
          tokens: z.int().meta({ description: "Estimated." }),
          of: z.enum(["conversation", "files"]).meta({ description: "What needs the tokens." }),
          left: z.int().meta({ description: "What is left of the limit." }),
        })
        .exactOptional()
        .meta({ description: "Present if something is left of the limit, but too little." }),
    }),
    withParameters("tool_limit", {
      max: z.int().meta({ description: "The most tool calls of a turn." }),
    }),
    withReason("agent_offline", {
      not_connected: "the owner starts the program",
      not_claiming: "the program is connected, and claims no turns; the owner restarts it",
    }),
    withReason("agent_failed", {
      failed: "the program says so",
      empty_answer: "the program wrote nothing",
    }),
    plain("agent_suspended"),
    withReason("internal", {
      server: "an error of the server, which is in its log",
      sealed_key: "the stored key does not open; the owner stores it again",
    }),
  ])
  .meta({ id: "TurnError" });
export type TurnError = z.infer<typeof TurnError>;
export type TurnErrorCode = TurnError["code"];

/** A turn's error without its sentence, which is derived from the rest. */
export type TurnFacts = {
  [Code in TurnErrorCode]: Omit<Required<Extract<TurnError, { code: Code }>>, "message">;
}[TurnErrorCode];

export type TurnParameters<Code extends TurnErrorCode> =
  Extract<TurnFacts, { code: Code }> extends { parameters: infer Parameters }
    ? Parameters
    : undefined;

export const turnErrorCodes: readonly TurnErrorCode[] = TurnError.options.map(
  ({ shape }) => shape.code.value,
);
