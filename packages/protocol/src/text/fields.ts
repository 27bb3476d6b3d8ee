import { z } from "zod";
import { cleanName, isReservedName } from "./names.ts";

const utf8 = new TextEncoder();

const utf8Length = (value: string) => utf8.encode(value).length;
/** Whether the UTF-8 encoding fits. A code unit takes at most 3 bytes, so short strings need no encoding. */
const fitsBytes = (value: string, max: number) =>
  value.length * 3 <= max || (value.length <= max && utf8Length(value) <= max);

/** Whether there are at most so many code points. One takes at most 2 code units: longer strings are not counted. */
const fitsCodePoints = (value: string, max: number) => {
  if (value.length <= max) return true;
  if (value.length > 2 * max) return false;
  let count = 0;
  for (const _ of value) count++;
  return count <= max;
};

/**
 * C0 controls other than tab and line breaks. In JSON most of them take six bytes. A carriage return is
 * one unless it belongs to a line break of Windows, whose other half may be in the next part of a stream.
 */
const C0_CONTROL = /[^\P{Cc}\t\n\r\u007f-\u009f]|\r(?!\n|$)/u;

export const CONTROLS =
  "must be well-formed Unicode without control characters, except tabs and line breaks";

/**
 * Base of all strings in requests: well-formed Unicode without control characters. PostgreSQL cannot
 * store NUL.
 */
export const anyText = z
  .string()
  .refine((value) => value.isWellFormed() && !C0_CONTROL.test(value), {
    message: CONTROLS,
    abort: true,
  });

export const text = (min: number, max: number) =>
  anyText
    .refine((value) => value.length >= min && fitsCodePoints(value, max), {
      message: `must have ${min} to ${max} characters`,
    })
    .meta({ minLength: min, maxLength: max });

/** Code units accepted per character of a name before cleaning: bounds the cost of `cleanName`. */
const RAW_PER_CHARACTER = 32;

/** Text shown on one line: a name or a title, without invisible and direction-changing characters. */
export const line = (min: number, max: number) =>
  anyText
    .refine((value) => value.length <= max * RAW_PER_CHARACTER, {
      message: `must have ${min} to ${max} characters`,
      abort: true,
    })
    .transform(cleanName)
    .pipe(
      text(min, max).refine((value) => !/\p{Cc}/u.test(value), {
        message: "must not contain line breaks or control characters",
      }),
    );

/** The display name of a person or an agent. Names of the service and its staff are reserved. */
export const displayName = line(1, 64).refine((value) => !isReservedName(value), {
  message: "is reserved",
});

/** The content of a message that may have files: Markdown with the component markup. */
export const emptiableContent = (maxBytes: number) =>
  anyText
    .refine((value) => fitsBytes(value, maxBytes), {
      message: `must have 1 to ${maxBytes} bytes of UTF-8`,
      abort: true,
    })
    .meta({ maxLength: maxBytes });

export const isBlank = (value: string) => !/\S/.test(value);
export const BLANK = "must not be empty or only white space";

/** The content of a message without files. */
export const content = (maxBytes: number) =>
  emptiableContent(maxBytes)
    .refine((value) => !isBlank(value), { message: BLANK })
    .meta({ minLength: 1, maxLength: maxBytes });

/** The name of a file: not a path, and without characters that make it look like another type. */
export const fileName = line(1, 255).refine((value) => !/[/\\]|^\.{1,2}$/.test(value), {
  message: "must not contain slashes",
});

/** Any UUID in any case, converted to lowercase. The server itself makes version 7. */
export const uuid = z
  .string()
  .regex(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i, "must be a UUID")
  .toLowerCase()
  .meta({ format: "uuid" });

export const pictureId = uuid.nullable().meta({
  description: "An upload of the caller with the purpose `picture`; null removes the picture.",
});

export const historyId = uuid.meta({
  description:
    "Identifies the history that all counters belong to. It changes when the server is restored from a backup: clients then discard their data and fetch everything again.",
});

export const ownSeq = z.int().meta({
  description:
    "The caller's own counter. It goes up by one each time the caller hides messages with `deleteMessagesForMe`, blocks somebody, ends a block, changes their view of a conversation or the settings of an agent, and when a product changes their policy.",
});

export const timestamp = z.string().meta({ format: "date-time" });

/** A username in upper or lower case, converted to lowercase. */
export const username = anyText
  .refine((value) => value.length >= 1 && value.length <= 80, {
    message: "must have 1 to 80 characters",
  })
  .toLowerCase()
  .meta({ minLength: 1, maxLength: 80 });

/** The username of a new account. */
export const newUsername = anyText
  .toLowerCase()
  .regex(/^[a-z0-9_]{2,32}$/, {
    message: "must be 2 to 32 letters, digits or underscores",
    abort: true,
  })
  .refine((value) => !isReservedName(value), { message: "is reserved" });

/** What the ids of providers and the names of agents look like. */
export const AGENT_NAME = /^[a-z][a-z0-9_-]{1,31}$/;

/** The name of a new agent: the part of its username after the colon. */
export const agentName = anyText.regex(AGENT_NAME, {
  message:
    "must be 2 to 32 lowercase letters, digits, underscores or hyphens, and begin with a letter",
});

/** The id of a person in the product that embeds the service: any printable characters. */
export const externalId = anyText
  .refine((value) => /^[^\p{C}\p{Zl}\p{Zp}]{1,128}$/u.test(value) && value.trim() === value, {
    message: "must be 1 to 128 printable characters, without spaces at the ends",
  })
  .meta({ minLength: 1, maxLength: 128 });

/**
 * An object with any keys, at most `max` of them: they are counted before any is validated. `z.record`
 * drops the key `__proto__` without an error: it is refused here.
 */
export const entries = <Value extends z.ZodType>(key: typeof anyText, value: Value, max: number) =>
  z
    .preprocess(
      (given: Record<string, z.input<Value>>, context) => {
        if (typeof given !== "object" || given === null) return given;
        if (Object.keys(given).length > max) context.addIssue(`must have at most ${max} entries`);
        else if (Object.hasOwn(given, "__proto__")) {
          context.addIssue({ code: "custom", message: "is not a valid name", path: ["__proto__"] });
        }
        return given;
      },
      z.record(key, value),
    )
    .meta({ maxProperties: max });

/** What a product stores with a person. */
export const metadata = entries(text(1, 64), text(0, 512), 32);

const MAX_METADATA_BYTES = 4096;
/** Checked before JSON.stringify, which takes seconds for a value of tens of thousands of levels. */
const MAX_METADATA_DEPTH = 16;
/** An entry takes at least six bytes. */
const MAX_METADATA_ENTRIES = MAX_METADATA_BYTES / 4;

/** Whether every store can keep a value, and it has at most this many levels. Looks no deeper. */
export function isStorable(value: unknown, levels: number): boolean {
  if (typeof value === "string") return anyText.safeParse(value).success;
  if (typeof value !== "object" || value === null) return true;
  if (levels === 0) return false;
  return Object.entries(value).every(
    ([key, each]) => isStorable(key, 0) && isStorable(each, levels - 1),
  );
}

/** What a product stores with a conversation or a message. */
export const jsonObject = entries(anyText, z.unknown(), MAX_METADATA_ENTRIES)
  .refine((given) => isStorable(given, MAX_METADATA_DEPTH), {
    message: `must be well-formed text without NUL characters, nested at most ${MAX_METADATA_DEPTH} levels deep`,
    abort: true,
  })
  .refine((given) => utf8Length(JSON.stringify(given)) <= MAX_METADATA_BYTES, {
    message: `must have at most ${MAX_METADATA_BYTES} bytes as JSON`,
  });

/** Emoji characters shown as text unless a variation selector follows: `❤`, `1` before a keycap. */
const UNQUALIFIED = /(?!\p{Emoji_Presentation})\p{Emoji}(?!\p{Emoji_Modifier}|[\ufe0e\ufe0f])/gu;
/** An emoji with the variation selectors that its RGI sequence has. */
const qualified = (value: string) =>
  isEmoji(value) ? value : value.replace(UNQUALIFIED, "$&\ufe0f");
const isEmoji = (value: string) => /^\p{RGI_Emoji}$/v.test(value);

/** In code units. The longest emoji has 15. */
const MAX_EMOJI_LENGTH = 32;

export const emoji = anyText
  .refine((value) => value.length <= MAX_EMOJI_LENGTH, {
    message: "must be exactly one emoji",
    abort: true,
  })
  .transform(qualified)
  .refine(isEmoji, { message: "must be exactly one emoji" })
  // The longest RGI sequences have ten code points.
  .meta({ minLength: 1, maxLength: 16, examples: ["👍"] });
