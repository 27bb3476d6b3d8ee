/**
 * The content of a model request, in no provider's wire format. Each wire protocol encodes every
 * kind of part, so a new kind of content needs a part here and nothing else on the way to a model.
 */

/** One message of a model request. Its content has at least one part, and no text is empty. */
export type ModelMessage =
  | { readonly role: "user"; readonly content: readonly UserPart[] }
  | { readonly role: "assistant"; readonly content: readonly AssistantPart[] };

/** What participants, files and tools tell the model. */
export type UserPart = TextPart | ImagePart | FilePart | ToolResultPart;

/** What the model itself wrote or asked for. */
export type AssistantPart = TextPart | ToolUsePart;

export interface TextPart {
  readonly type: "text";
  readonly text: string;
}

export interface ImagePart {
  readonly type: "image";
  /** The formats that both wire protocols accept. */
  readonly media_type: "image/jpeg" | "image/png" | "image/gif" | "image/webp";
  readonly data: Uint8Array;
}

/**
 * A file that is not an image. Models read PDF and text; of any other type they learn the name,
 * the type and the size.
 */
export interface FilePart {
  readonly type: "file";
  readonly name: string;
  readonly media_type: string;
  readonly data: Uint8Array;
}

/** A tool that the model may call. */
export interface ToolDefinition {
  /** At most 64 characters, `A-Z a-z 0-9 _ -`: providers accept no others. */
  readonly name: string;
  readonly description: string;
  /** JSON Schema of an object. */
  readonly input_schema: Readonly<Record<string, unknown>>;
}

/** A call that the model asked for. */
export interface ToolUsePart {
  readonly type: "tool_use";
  /** As the provider named the call. */
  readonly id: string;
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
  /** Fields of the call that only its provider understands, as they came. */
  readonly provider_fields?: ProviderFields;
  /** What the model thought before the first call of a message, in the format of its provider. */
  readonly thoughts?: readonly ProviderFields[];
}

/** Providers want it back in the next requests of a turn, and may refuse a request without it. */
export type ProviderFields = Readonly<Record<string, unknown>>;

/**
 * The result of a call, in the user message right after the one that asked for it. Providers reject
 * a request in which a call has no result there.
 */
export interface ToolResultPart {
  readonly type: "tool_result";
  readonly tool_use_id: string;
  readonly content: readonly (TextPart | ImagePart | FilePart)[];
  readonly is_error: boolean;
}

/** Joins consecutive messages of one role: providers require that the roles alternate. */
export function joinRoles(messages: readonly ModelMessage[]): ModelMessage[] {
  const joined: ModelMessage[] = [];
  for (const next of messages) {
    const last = joined.at(-1);
    if (last?.role === next.role) {
      const content = joinContent<UserPart | AssistantPart>(last.content, next.content);
      joined.splice(-1, 1, { role: next.role, content } as ModelMessage);
    } else {
      joined.push(next);
    }
  }
  return joined;
}

/** Makes one text of adjacent ones: some providers accept a text, but no list of texts. */
export const joinTexts = (parts: readonly UserPart[]): UserPart[] =>
  parts.reduce<UserPart[]>((joined, part) => joinContent(joined, [part]), []);

/** Concatenates parts. Two adjacent texts become one, with a blank line between them. */
function joinContent<Part extends UserPart | AssistantPart>(
  before: readonly Part[],
  after: readonly Part[],
): (Part | TextPart)[] {
  const last = before.at(-1);
  const [first] = after;
  if (last?.type !== "text" || first?.type !== "text") return [...before, ...after];
  const text = `${last.text}\n\n${first.text}`;
  return [...before.slice(0, -1), { type: "text", text }, ...after.slice(1)];
}
