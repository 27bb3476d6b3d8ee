import { z } from "zod";
import { uuid } from "../text/fields.ts";
import { Message } from "./messages.ts";
import { record } from "./record.ts";

export const TurnRequest = record("TurnRequest", {
  turn_id: z.int(),
  conversation_id: uuid,
  message_id: uuid.meta({ description: "The message to answer." }),
  context: z.array(Message).meta({
    description:
      "The conversation up to the message to answer, or a little beyond it, oldest first, as the agent's owner sees it. At most 100 messages.",
  }),
});
export type TurnRequest = z.infer<typeof TurnRequest>;

export const ClaimedTurn = record("ClaimedTurn", {
  ...TurnRequest.shape,
  answer_id: uuid.meta({ description: "The message that the answer is written to." }),
});
export type ClaimedTurn = z.infer<typeof ClaimedTurn>;
