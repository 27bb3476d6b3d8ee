import { z } from "zod";
import { operation } from "../operation.ts";
import { text, uuid } from "../text.ts";

const MAX_FIELDS = 50;
const MAX_FIELDS_BYTES = 16_384;
const utf8 = new TextEncoder();

const fields = z
  .record(text(1, 64), z.unknown())
  .refine((given) => Object.keys(given).length <= MAX_FIELDS, {
    message: `must have at most ${MAX_FIELDS} entries`,
  })
  .refine((given) => fitsBytes(given, MAX_FIELDS_BYTES), {
    message: `must have at most ${MAX_FIELDS_BYTES} bytes in all`,
  })
  .meta({
    description:
      "The values of a form by field name: at most 50 of any JSON type, 16 KiB in total. A multiple choice is a list.",
    maxProperties: MAX_FIELDS,
  });

function fitsBytes(given: object, maxBytes: number): boolean {
  try {
    return utf8.encode(JSON.stringify(given)).length <= maxBytes;
  } catch {
    // Too deeply nested for JSON.stringify, and therefore far beyond the limit.
    return false;
  }
}

export const sendComponentAction = operation({
  name: "sendComponentAction",
  socket: "components.submit",
  summary: "Submits a button press or a form of a message; an agent of the conversation replies.",
  rate: "messages",
  input: z.object({
    chat_id: uuid,
    message_id: uuid,
    action: text(1, 1024).meta({
      description: "The `action` of the button, or `form_submit:<id>` for a form.",
      examples: ["trade:buy:AAPL:10"],
    }),
    fields: fields.optional(),
  }),
  errors: ["forbidden", "not_found"],
});
