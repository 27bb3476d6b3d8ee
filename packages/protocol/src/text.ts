import { z } from "zod";
import { cleanName, isReservedName } from "./names.ts";

const utf8 = new TextEncoder();

/** Bytes of UTF-8, without encoding strings that are certain to fit. */
const utf8Length = (value: string) => utf8.encode(value).length;
const fitsBytes = (value: string, max: number) =>
  value.length * 3 <= max || (value.length <= max && utf8Length(value) <= max);

/** Counts characters as people do: an emoji outside the basic plane is one, not two. */
const codePoints = (value: string) => {
  let count = 0;
  for (const _ of value) count++;
  return count;
};

/** Every string from outside: well-formed Unicode (no lone surrogate) without NUL, which no store can hold. */
export const anyText = z.string().refine((value) => value.isWellFormed() && !value.includes("\0"), {
  message: "must be well-formed Unicode without NUL characters",
  abort: true,
});

export const text = (min: number, max: number) =>
  anyText
    .refine((value) => value.length >= min && (value.length <= max || codePoints(value) <= max), {
      message: `must have ${min} to ${max} characters`,
    })
    .meta({ minLength: min, maxLength: max });

/** Room for invisible characters that are removed, and a bound for the work of removing them. */
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

/** The name of a person or an agent. Names of the service itself and its staff are reserved. */
export const displayName = line(1, 64).refine((value) => !isReservedName(value), {
  message: "is reserved",
});

/** Content of a message: Markdown with the component markup. */
export const content = (maxBytes: number) =>
  anyText
    .refine((value) => fitsBytes(value, maxBytes), {
      message: `must have 1 to ${maxBytes} bytes of UTF-8`,
      abort: true,
    })
    .refine((value) => /\S/.test(value), { message: "must not be empty or only white space" })
    .meta({ minLength: 1, maxLength: maxBytes });

/** Any UUID, in any case; ours are version 7 and lowercase. */
export const uuid = z
  .string()
  .regex(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i, "must be a UUID")
  .toLowerCase()
  .meta({ format: "uuid" });

export const historyId = uuid.meta({
  description:
    "Names the history that all counters belong to. It changes when the server is restored from a backup: drop what is known and fetch it anew.",
});

export const ownSeq = z.int().meta({
  description:
    "The caller's own counter, which goes up by one when the caller deletes messages for themselves.",
});

export const timestamp = z.string().meta({ format: "date-time" });

/** A username as typed: compared in lowercase. */
export const username = anyText
  .refine((value) => value.length >= 1 && value.length <= 80, {
    message: "must have 1 to 80 characters",
  })
  .toLowerCase()
  .meta({ minLength: 1, maxLength: 80 });

/** Characters that are shown as text unless a variation selector follows: `❤`, `1` before a keycap. */
const UNQUALIFIED = /(?!\p{Emoji_Presentation})\p{Emoji}(?!\p{Emoji_Modifier}|[\ufe0e\ufe0f])/gu;
/** An emoji with the variation selectors that its RGI sequence has. */
const qualified = (value: string) =>
  isEmoji(value) ? value : value.replace(UNQUALIFIED, "$&\ufe0f");
const isEmoji = (value: string) => /^\p{RGI_Emoji}$/v.test(value);

export const emoji = anyText
  .transform(qualified)
  .refine(isEmoji, { message: "must be exactly one emoji" })
  // The longest sequences have ten code points.
  .meta({ minLength: 1, maxLength: 16, examples: ["👍"] });
