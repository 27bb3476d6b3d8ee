import { z } from "zod";
import { operation } from "../operation.ts";
import { CONTROLS, entries, isStorable, text, uuid } from "../text/fields.ts";

export const MAX_FIELDS = 50;
const MAX_FIELDS_BYTES = 16_384;
/** Checked before JSON.stringify, which takes seconds for a value of tens of thousands of levels. */
const MAX_FIELDS_DEPTH = 32;
const utf8 = new TextEncoder();

/** The name of a field of a form. */
export const FieldName = text(1, 64);

const fields = entries(FieldName, z.unknown(), MAX_FIELDS)
  .refine((given) => isWithinDepth(given, MAX_FIELDS_DEPTH), {
    message: `must be nested at most ${MAX_FIELDS_DEPTH} levels deep`,
    abort: true,
  })
  .refine((given) => isStorable(given, MAX_FIELDS_DEPTH), { message: CONTROLS, abort: true })
  .refine((given) => utf8.encode(JSON.stringify(given)).length <= MAX_FIELDS_BYTES, {
    message: `must have at most ${MAX_FIELDS_BYTES} bytes in all`,
  })
  .meta({
    description:
      "The values of a form by field name: at most 50 of any JSON type, nested at most 32 levels deep, 16 KiB in total. A multiple choice is a list.",
  });

/** Whether a value has at most this many levels of lists and objects. Looks no deeper. */
function isWithinDepth(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  return levels > 0 && Object.values(value).every((each) => isWithinDepth(each, levels - 1));
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
  errors: ["forbidden", "not_found", "conflict"],
});
