import { z } from "zod";
import { operation } from "../operation.ts";
import { uuid } from "../text/fields.ts";

export const sendChatAction = operation({
  name: "sendChatAction",
  socket: "typing.set",
  agents: true,
  summary:
    "Shows or renews the caller's typing indicator (action `typing`), or clears it (any other action).",
  input: z
    .object({
      chat_id: uuid,
      action: z.string().optional().meta({
        description:
          "`typing` shows the indicator for six seconds; call again to renew it. Any other value clears it.",
      }),
      is_typing: z.boolean().optional().meta({
        description: "May be given instead of `action`: true shows the indicator, false clears it.",
      }),
    })
    .refine(({ action, is_typing }) => action !== undefined || is_typing !== undefined, {
      message: "is required",
      path: ["action"],
    })
    .meta({ anyOf: [{ required: ["action"] }, { required: ["is_typing"] }] }),
  errors: ["forbidden", "not_found"],
});
