import type { Message } from "@parley/protocol";
import { z } from "zod";
import type { Provider } from "../../config/config.ts";
import { whyNotShown } from "../../rules/context-files.ts";
import type { FilePart, ImagePart } from "../../rules/model-content.ts";
import { once } from "../../rules/once.ts";
import { indentLines, quoteName } from "../../rules/quoting.ts";
import { searchWords } from "../../rules/search.ts";
import type { Store } from "../../store/store.ts";
import type { TurnRecord } from "../../store/turns.ts";
import type { TurnFiles } from "../context-files/index.ts";
import { isTextFile } from "../providers/file-text.ts";
import { MAX_RESULT_BYTES, type ToolResult } from "./result-text.ts";

/** What a built-in tool returns. The parts are shown to the model and not stored. */
export interface BuiltInResult extends ToolResult {
  readonly parts?: readonly (ImagePart | FilePart)[];
  /** Estimated, of the parts. */
  readonly tokens?: number;
}

/** Where a built-in tool is used: in the conversation of a turn, with the eyes of the agent's owner. */
interface BuiltInPlace {
  readonly store: Pick<Store, "read" | "search">;
  readonly config: { readonly limits: { readonly image_pixels: number } };
  readonly turn: Pick<TurnRecord, "conversation_id" | "conversation_uuid">;
  readonly owner_id: number;
  readonly provider: Provider;
  /** Holds what is read of files until the turn ends: the model is told it in every further round. */
  readonly files: TurnFiles;
}

interface BuiltIn<Input extends z.ZodType = z.ZodType> {
  readonly title: string;
  readonly description: string;
  readonly input: Input;
  run(place: BuiltInPlace, input: z.output<Input>): Promise<BuiltInResult>;
}

const tool = <Input extends z.ZodType>(definition: BuiltIn<Input>): BuiltIn =>
  definition as unknown as BuiltIn;

const MAX_FOUND = 20;
const MAX_READ = 50;
const ok = (text: string): BuiltInResult => ({ text, is_error: false });
const failed = (text: string): BuiltInResult => ({ text, is_error: true });

const search_messages = tool({
  title: "Search messages",
  description: `Finds messages of this conversation that contain all the given words, newest first, at most ${MAX_FOUND}.`,
  input: z.object({ query: z.string().min(1).max(200).describe("The words to search for.") }),
  run: async ({ store, turn, owner_id }, { query }) => {
    const words = searchWords(query);
    if (words.length === 0) return failed("The query has no words to search for.");
    const scope = { viewerId: owner_id, conversationId: turn.conversation_id };
    const hits = await store.search({ words, ...scope, limit: MAX_FOUND });
    const uuids = hits.map(({ uuid }) => uuid);
    const found = await store.read((tx) => tx.messageViews(uuids, owner_id));
    const lines = linesThatFit(found);
    const isCut = lines.length < found.length;
    return listed(lines, isCut && "Search for more words to find fewer messages.");
  },
});

const read_messages = tool({
  title: "Read messages",
  description: `Reads messages of this conversation, oldest first, at most ${MAX_READ}: the latest, or those before the message with the given id.`,
  input: z.object({
    before: z.uuid().optional().describe("The id of a message."),
    limit: z.int().min(1).max(MAX_READ).optional(),
  }),
  run: async ({ store, turn, owner_id }, { before, limit = MAX_READ }) =>
    store.read(async (tx) => {
      const place = before === undefined ? null : await tx.message(before);
      if (before !== undefined && place?.conversation_id !== turn.conversation_id) {
        return failed("There is no message with this id in this conversation.");
      }
      const { items } = await tx.messagePage({
        conversationId: turn.conversation_id,
        viewerId: owner_id,
        ...(place && { from: { seq: place.seq, direction: "older" as const } }),
        limit,
      });
      const lines = linesThatFit(items.toReversed()).toReversed();
      const isCut = lines.length < items.length;
      return listed(lines, isCut && `To go on, read before ${items.at(-lines.length)?.id}.`);
    }),
});

const read_file = tool({
  title: "Read a file",
  description:
    "Shows a text file, a PDF or a picture that was sent in this conversation. The lists of messages have the ids of their files.",
  input: z.object({ file_id: z.uuid().describe("The id of the file.") }),
  run: async (place, { file_id }) => {
    const file = await visibleFile(place, file_id);
    if (!file) return failed("There is no file with this id in this conversation.");
    const { files, provider } = place;
    if (files.loaded.get(file_id)?.status !== "shown") {
      const why = whyNotShown(file, files.loaded);
      if (why !== null) return failed(`Not shown: ${why}.`);
      const { image_pixels } = place.config.limits;
      await files.load([file], { ...provider, image_pixels });
    }
    const loaded = files.loaded.get(file_id);
    if (loaded?.status !== "shown") return failed("The file cannot be shown.");
    const { part, tokens } = loaded;
    if (part.type === "file" && isTextFile(part)) {
      return ok(`The file ${quoteName(file.name)}:\n${new TextDecoder().decode(part.data)}`);
    }
    return { text: `The file ${quoteName(file.name)}:`, parts: [part], tokens, is_error: false };
  },
});

const current_time = tool({
  title: "Current time",
  description: "Returns the current date and time.",
  input: z.object({
    time_zone: z.string().max(64).optional().describe("Such as Europe/Berlin. Default: UTC."),
  }),
  run: async (_, { time_zone = "UTC" }) => {
    const now = new Date();
    try {
      const local = new Intl.DateTimeFormat("en-GB", {
        dateStyle: "full",
        timeStyle: "long",
        timeZone: time_zone,
      }).format(now);
      return ok(`${now.toISOString()} (${local})`);
    } catch {
      return failed("There is no such time zone.");
    }
  },
});

const all: Readonly<Record<string, BuiltIn>> = {
  search_messages,
  read_messages,
  read_file,
  current_time,
};

/** For every agent: they show what it can read anyway. Made on first use, because schemas take long. */
export const builtInTools = once(() =>
  Object.entries(all).map(([tool, { title, description, input }]) => ({
    server_id: null,
    server: "parley",
    tool,
    title,
    description,
    input_schema: schemaOf(input),
    fingerprint: null,
    policy: "always" as const,
  })),
);

/** Without what models do not need: every request has it, and the owner pays for it. */
function schemaOf(input: z.ZodType): Record<string, unknown> {
  const described = z.toJSONSchema(input, { io: "input" });
  const { $schema: _, additionalProperties: __, ...schema } = described;
  return schema;
}

/** Runs a built-in tool. What is wrong with the arguments is told to the model. */
export async function runBuiltIn(
  place: BuiltInPlace,
  name: string,
  given: Readonly<Record<string, unknown>>,
): Promise<BuiltInResult> {
  const builtIn = all[name];
  if (!builtIn) return failed("There is no such tool.");
  const parsed = builtIn.input.safeParse(given);
  if (!parsed.success) return failed(`Wrong arguments: ${z.prettifyError(parsed.error)}`);
  return builtIn.run(place, parsed.data);
}

function visibleFile({ store, turn, owner_id }: BuiltInPlace, fileId: string) {
  return store.read(async (tx) => {
    const [record] = await tx.files([fileId]);
    if (record?.conversation_uuid !== turn.conversation_uuid || record.message_uuid === null)
      return;
    const [message] = await tx.messageViews([record.message_uuid], owner_id);
    return message?.files.find(({ id }) => id === fileId);
  });
}

/** The room for what `listed` says first. */
const MAX_LINES_BYTES = MAX_RESULT_BYTES - 256;

/**
 * Messages as a model reads them, each with its id. What people wrote is indented. The first are kept,
 * as many as a result has room for, and at least one.
 */
function linesThatFit(messages: readonly Message[]): string[] {
  const lines: string[] = [];
  let bytes = 0;
  for (const message of messages) {
    const text = line(message);
    bytes += Buffer.byteLength(text) + 1;
    if (bytes > MAX_LINES_BYTES && lines.length > 0) break;
    lines.push(text);
  }
  return lines;
}

/** `advice`: how to get the messages that there was no room for; false if these are all. */
function listed(lines: readonly string[], advice: string | false): BuiltInResult {
  if (lines.length === 0) return ok("There are none.");
  const note = `[The result was cut: older messages do not fit into 64 KiB. ${advice}]`;
  return ok((advice === false ? lines : [note, ...lines]).join("\n"));
}

function line({ id, sender, created_at, content, files }: Message): string {
  const named = files.map((file) => `\n(file ${quoteName(file.name)}, id ${file.id})`);
  return `[${id}] ${created_at} ${sender.username}: ${indentLines(`${content}${named.join("")}`)}`;
}
