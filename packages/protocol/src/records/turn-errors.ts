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
  ...reasons: [Reason, ...Reason[]]
) => withParameters(code, { reason: z.enum(reasons) });

/**
 * Why a turn failed, for programs. The `message` is derived from the code and the parameters
 * (`text/turn-sentences.ts`). Parameters are missing if only the message is known: in turns that an
 * earlier version stored, and where a program says why it failed.
 */
export const TurnError = z
  .discriminatedUnion("code", [
    plain("key_missing"),
    withReason("key_rejected", "rejected", "malformed", "operator_key", "sandbox_off"),
    withReason("provider_rate_limited", "requests", "no_credit"),
    withReason(
      "provider_unavailable",
      "failing",
      "unreachable",
      "redirects",
      "broken_answer",
      "empty_answer",
      "answer_limit",
      "too_much_data",
      "not_offered",
    ),
    withReason("provider_refused", "no_credit", "unknown_model", "request", "tools", "answer"),
    withReason("context_too_long", "conversation", "tool_results"),
    plain("timeout"),
    withReason(
      "interrupted",
      "restart",
      "unavailable",
      "program_gone",
      "message_deleted",
      "agent_deleted",
    ),
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
    withReason("agent_offline", "not_connected", "not_claiming"),
    withReason("agent_failed", "failed", "empty_answer"),
    plain("agent_suspended"),
    withReason("internal", "server", "sealed_key"),
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
