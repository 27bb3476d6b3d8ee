import { isTextType } from "../../rules/files.ts";
import type { FilePart } from "../../rules/model-content.ts";
import { indentLines, quoteName } from "../../rules/quoting.ts";

export const isTextFile = ({ media_type }: FilePart) => isTextType(media_type);

export const decodeText = ({ data }: FilePart): string => new TextDecoder().decode(data);

/** A file as text, for where a protocol does not accept its type: its content or a description. */
export function fileAsText(file: FilePart): string {
  const { name, media_type, data } = file;
  const description = `File ${quoteName(name)} (${media_type}, ${data.length} bytes)`;
  return isTextFile(file)
    ? indentLines(`${description}:\n${decodeText(file)}`)
    : `${description}: you cannot see its content.`;
}
