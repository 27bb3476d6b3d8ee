import { z } from "zod";
import { operation } from "../operation.ts";
import { text, timestamp, username } from "../text/fields.ts";

export const exportMe = operation({
  name: "exportMe",
  socket: "accounts.export",
  throttles: ["export_links"],
  sensitive: true,
  summary:
    "Returns a link to a ZIP archive of everything the service has of the caller, as JSON Lines: the account, sessions, agents and tool servers without their keys, usage, blocked people, hooks without their secrets, reports, conversations and their messages, own messages in conversations that the caller has left, reactions, and the uploaded files themselves. One download at a time.",
  output: z.object({
    url: z.string().meta({
      description: "Works without a token, so that a browser can download it. Keep it secret.",
    }),
    expires_at: timestamp.meta({ description: "The download must begin before then." }),
  }),
});

/** Also of `eraseAccount`. */
export const deletedMessages = z.boolean().optional().meta({
  description:
    "Whether messages of the person and of their agents are deleted too. Default: they stay, without the name.",
});

export const deleteMe = operation({
  name: "deleteMe",
  socket: "accounts.delete",
  throttles: [{ name: "passwords", of: "Each wrong password or code" }],
  policy: "delete_account",
  summary:
    "Deletes the caller's account for good: ends all sessions and agents, leaves all groups, and removes what identifies the person except the username, which nobody else gets. Messages stay as those of a deleted account, unless `messages` is true.",
  input: z.object({
    password: text(1, 1024)
      .optional()
      .meta({ description: "Required from people who have a password." }),
    username: username.optional().meta({
      description:
        "The caller's own username, as confirmation of people without a password, who must have signed in in the last `confirm_minutes`.",
    }),
    messages: deletedMessages,
  }),
  errors: ["conflict", "confirmation_required"],
});
