import { z } from "zod";
import { operation } from "../operation.ts";
import { ClaimedTurn, TurnReceipt } from "../records.ts";
import { emptiableContent, line, uuid } from "../text/fields.ts";

/** The most bytes that one `writeTurn` takes. */
const MAX_DELTA_BYTES = 32_768;

const turnId = z.int().min(1);
const message = z.object({ message_id: uuid });
const tokens = z.int().min(0).max(1_000_000_000);

export const claimTurn = operation({
  name: "claimTurn",
  socket: "turns.claim",
  summary:
    "Claims a turn of the agent that waits, and begins its message; null if none waits. Each turn is claimed once.",
  access: "agent",
  input: z.object({
    turn_id: turnId.optional().meta({ description: "Default: the turn that waits longest." }),
    wait_seconds: z
      .number()
      .min(0)
      .max(30)
      .optional()
      .meta({ description: "How long to wait for a turn. Default: 0." }),
  }),
  output: ClaimedTurn.nullable(),
});

export const writeTurn = operation({
  name: "writeTurn",
  socket: "turns.write",
  summary:
    "Appends text to the answer of a claimed turn. An empty text only renews the lease of 30 seconds, as every call about the turn does.",
  access: "agent",
  input: z.object({
    turn_id: turnId,
    delta: emptiableContent(MAX_DELTA_BYTES),
    offset: z.int().min(0).meta({
      description:
        "The length of the answer so far in bytes of UTF-8: where the text begins. Another value is a 409 with the right one in `parameters.offset`, so that a call can be repeated safely.",
    }),
  }),
  output: z.object({
    offset: z.int().meta({ description: "The length of the answer in bytes after this text." }),
  }),
  errors: ["not_found", "conflict"],
});

export const setTurnStatus = operation({
  name: "setTurnStatus",
  socket: "turns.status",
  summary: "Shows the conversation in a few words what the agent is doing right now.",
  access: "agent",
  input: z.object({ turn_id: turnId, text: line(0, 200) }),
  errors: ["not_found", "conflict"],
});

export const finishTurn = operation({
  name: "finishTurn",
  socket: "turns.finish",
  summary: "Ends a claimed turn; its message is then complete.",
  access: "agent",
  input: z.object({
    turn_id: turnId,
    status: z.enum(["complete", "failed"]),
    usage: z
      .object({ input_tokens: tokens, output_tokens: tokens })
      .optional()
      .meta({ description: "What the answer has cost. It counts against the agent's limits." }),
    error: line(1, 300).optional().meta({
      description: "With `failed`: a sentence for people that says why, shown in the conversation.",
    }),
  }),
  errors: ["not_found", "conflict"],
});

export const stopAgentTurn = operation({
  name: "stopAgentTurn",
  socket: "agents.stop",
  summary: "Stops an agent's answer; the message keeps the text streamed so far.",
  input: message,
  errors: ["forbidden", "not_found", "conflict"],
});

export const retryAgentTurn = operation({
  name: "retryAgentTurn",
  socket: "agents.retry",
  summary:
    "Has the agent answer the same message again, in a new message, unless its owner has blocked the caller.",
  input: message,
  errors: ["forbidden", "not_found", "conflict"],
});

export const getTurn = operation({
  name: "getTurn",
  socket: "agents.turn",
  summary:
    "Returns the receipt of an agent's turn: what the model was sent, how long it took, how it ended.",
  input: message,
  output: TurnReceipt,
  errors: ["forbidden", "not_found"],
});
