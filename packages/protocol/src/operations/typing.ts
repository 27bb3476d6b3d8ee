import { z } from "zod";
import { operation } from "../operation.ts";
import { uuid } from "../text.ts";

export const sendChatAction = operation({
  name: "sendChatAction",
  socket: "typing.set",
  summary:
    "Shows or renews (`typing`), or clears (any other action) the caller's typing indicator.",
  input: z
    .object({
      chat_id: uuid,
      action: z.string().optional(),
      is_typing: z.boolean().optional().meta({ description: "In place of `action`." }),
    })
    .refine(({ action, is_typing }) => action !== undefined || is_typing !== undefined, {
      message: "is required",
      path: ["action"],
    })
    .meta({ anyOf: [{ required: ["action"] }, { required: ["is_typing"] }] }),
  errors: ["forbidden", "not_found"],
});
