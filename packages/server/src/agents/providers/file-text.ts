import type { FilePart } from "../../rules/model-content.ts";

const TEXT_TYPE = /^text\/|^application\/(.+\+)?(json|xml)$/;

export const isTextFile = ({ media_type }: FilePart) => TEXT_TYPE.test(media_type);

export const decodeText = ({ data }: FilePart): string => new TextDecoder().decode(data);

/** A text file as part of a message. Its lines are indented, so none can pass for a message. */
export const inlineTextFile = (file: FilePart): string =>
  `${describeFile(file)}:\n${decodeText(file).replaceAll(/^/gm, "  ")}`;

/** What a model is told about a file that it cannot read. */
export const describeUnreadableFile = (file: FilePart): string =>
  `${describeFile(file)}: you cannot see its content.`;

const describeFile = ({ name, media_type, data }: FilePart) =>
  `File ${JSON.stringify(name)} (${media_type}, ${data.length} bytes)`;
