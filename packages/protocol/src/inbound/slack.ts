/**
 * The body of a Slack incoming webhook: what of it is read. Unknown fields, and blocks and elements of
 * unknown types, are ignored; a known field of the wrong type is an error.
 */

import { z } from "zod";

/** Slack itself truncates texts to 40,000 characters. */
const MAX_TEXT_CHARACTERS = 40_000;
const MAX_ITEMS = 100;

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is replaced
const CONTROL = /[\0-\x08\v\f\x0e-\x1f\x7f\u2028\u2029]/g;

/** Text with `\n` as its only line break. */
const text = z
  .union([z.string(), z.number(), z.boolean()], "must be text")
  .transform((value) =>
    String(value)
      .slice(0, MAX_TEXT_CHARACTERS)
      .toWellFormed()
      .replace(/\r\n?/g, "\n")
      .replace(CONTROL, " "),
  );
const listOf = <T extends z.ZodType>(item: T) =>
  z.array(item, "must be a list").max(MAX_ITEMS, `must have at most ${MAX_ITEMS} items`);
const objectOf = <T extends z.ZodRawShape>(shape: T) => z.object(shape, "must be an object");

type Schemas = Record<string, z.ZodObject>;
type Typed<T extends Schemas> = {
  [Type in keyof T]: { type: Type } & z.output<T[Type]>;
}[keyof T];

/** An object of one of the given types. Null for an object of any other type. */
function oneOf<T extends Schemas>(schemas: T) {
  return objectOf({ type: z.string("must be text") })
    .loose()
    .transform((value, context): Typed<T> | null => {
      const schema = Object.hasOwn(schemas, value.type) ? schemas[value.type] : undefined;
      if (schema === undefined) return null;
      const parsed = schema.safeParse(value);
      if (parsed.success) return { ...parsed.data, type: value.type } as Typed<T>;
      for (const { message, path } of parsed.error.issues) {
        context.issues.push({ code: "custom", message, path, input: value });
      }
      return z.NEVER;
    });
}

const textObject = objectOf({ type: text.nullish(), text });

const element = oneOf({
  mrkdwn: objectOf({ text }),
  plain_text: objectOf({ text }),
  image: objectOf({ image_url: text.nullish(), alt_text: text.nullish() }),
  button: objectOf({ text: textObject, url: text.nullish() }),
});

const flag = z.boolean("must be true or false").nullish();
const block = oneOf({
  section: objectOf({
    text: textObject.nullish(),
    fields: listOf(textObject).nullish(),
    accessory: element.nullish(),
  }),
  header: objectOf({ text: textObject }),
  divider: objectOf({}),
  context: objectOf({ elements: listOf(element) }),
  image: objectOf({
    image_url: text.nullish(),
    alt_text: text.nullish(),
    title: textObject.nullish(),
  }),
  actions: objectOf({ elements: listOf(element) }),
  markdown: objectOf({ text }),
});

const attachment = objectOf({
  fallback: text.nullish(),
  pretext: text.nullish(),
  author_name: text.nullish(),
  author_link: text.nullish(),
  title: text.nullish(),
  title_link: text.nullish(),
  text: text.nullish(),
  fields: listOf(objectOf({ title: text.nullish(), value: text.nullish() })).nullish(),
  blocks: listOf(block).nullish(),
  actions: listOf(objectOf({ text: text.nullish(), url: text.nullish() })).nullish(),
  image_url: text.nullish(),
  thumb_url: text.nullish(),
  color: text.nullish(),
  footer: text.nullish(),
  ts: text.nullish(),
  mrkdwn_in: listOf(text).nullish(),
});

const payload = objectOf({
  text: text.nullish(),
  mrkdwn: flag,
  blocks: listOf(block).nullish(),
  attachments: listOf(attachment).nullish(),
});

export type SlackPayload = z.output<typeof payload>;
export type SlackBlock = NonNullable<z.output<typeof block>>;
export type SlackElement = NonNullable<z.output<typeof element>>;
export type SlackText = z.output<typeof textObject>;
export type SlackAttachment = z.output<typeof attachment>;

/** Either the payload or what is wrong with it, by the path of the field. Never throws. */
export function parseSlackPayload(
  value: unknown,
): { payload: SlackPayload } | { problems: Record<string, string> } {
  const parsed = payload.safeParse(value);
  if (parsed.success) return { payload: parsed.data };
  const problems: Record<string, string> = {};
  for (const { path, message } of parsed.error.issues) {
    problems[path.join(".") || "payload"] ??= message;
  }
  return { problems };
}
