import { z } from "zod";
import { operation } from "../operation.ts";
import { IncomingHook } from "../records.ts";
import { anyText, uuid } from "../text/fields.ts";
import { isReservedName } from "../text/names.ts";

export const createIncomingHook = operation({
  name: "createIncomingHook",
  socket: "webhooks.create_incoming",
  throttles: ["account_creations"],
  sensitive: true,
  policy: "hooks",
  summary:
    "Creates an address at which another program posts into a group, with the payload of a Slack webhook.",
  input: z.object({
    chat_id: uuid,
    name: anyText
      .toLowerCase()
      .regex(/^[a-z][a-z0-9_-]{0,31}$/, {
        message:
          "must begin with a letter and have 1 to 32 letters (a to z), digits, dashes or underscores",
        abort: true,
      })
      .refine((value) => !isReservedName(value), { message: "is reserved" })
      .meta({
        description: "It posts as `<creator>:<name>`. The first character is a letter.",
        examples: ["alerts"],
      }),
  }),
  output: z.object({
    id: uuid,
    url: z.string().meta({
      description: "Whoever has it can post. It is not shown again.",
    }),
  }),
  errors: ["not_found", "conflict"],
});

export const getIncomingHooks = operation({
  name: "getIncomingHooks",
  socket: "webhooks.incoming",
  summary: "Lists the incoming hooks of a group, oldest first, for its admin.",
  input: z.object({ chat_id: uuid }),
  output: z.object({ items: z.array(IncomingHook) }),
  errors: ["not_found"],
});

export const deleteIncomingHook = operation({
  name: "deleteIncomingHook",
  socket: "webhooks.delete_incoming",
  summary: "Deletes an incoming hook: by its creator or the group's admin.",
  input: z.object({ hook_id: uuid }),
  errors: ["not_found"],
});
