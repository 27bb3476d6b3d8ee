import { z } from "zod";
import { operation } from "../operation.ts";
import { anyText, text, uuid } from "../text.ts";

const MAX_FIELDS = 50;
const MAX_FIELDS_BYTES = 16_384;
const bytes = new TextEncoder();

const fields = z
  .record(
    text(1, 64),
    z.union([anyText, z.number(), z.boolean()], "must be text, a number or true or false"),
  )
  .refine((given) => Object.keys(given).length <= MAX_FIELDS, {
    message: `must have at most ${MAX_FIELDS} entries`,
  })
  .refine((given) => bytes.encode(JSON.stringify(given)).length <= MAX_FIELDS_BYTES, {
    message: `must have at most ${MAX_FIELDS_BYTES} bytes in all`,
  });

export const sendComponentAction = operation({
  name: "sendComponentAction",
  socket: "components.submit",
  summary: "Submits a button press or a form of an agent's message.",
  input: z.object({
    chat_id: uuid,
    message_id: uuid,
    action: text(1, 1024).meta({
      description: "The opaque token of the component.",
      examples: ["trade:buy:AAPL:10"],
    }),
    fields: fields.optional(),
  }),
  errors: ["forbidden", "not_found"],
});
