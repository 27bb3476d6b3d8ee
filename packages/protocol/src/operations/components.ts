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
    description: "The submitted values by name: at most 50, any JSON, 16 KiB in all.",
    maxProperties: MAX_FIELDS,
  });

function fitsBytes(given: object, most: number): boolean {
  try {
    return utf8.encode(JSON.stringify(given)).length <= most;
  } catch {
    // Nested too deeply to be written out again, and so far beyond the limit.
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
      description: "The opaque token of the component.",
      examples: ["trade:buy:AAPL:10"],
    }),
    fields: fields.optional(),
  }),
  errors: ["forbidden", "not_found"],
});
