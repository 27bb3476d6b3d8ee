import type { File } from "@parley/protocol";

/** The file as clients see it. */
export const publicFile = (file: File): File => ({
  id: file.id,
  name: file.name,
  type: file.type,
  size: file.size,
  width: file.width,
  height: file.height,
  duration_ms: file.duration_ms,
  status: file.status,
  placeholder: file.placeholder,
});

/** What a search result shows of a message. The names of its files stand apart from its text. */
export const shownText = (content: string, files: readonly Pick<File, "name">[]) =>
  [content, ...files.map(({ name }) => name)].filter((each) => each.trim() !== "").join(" · ");

/** What is searched of a message: its text, and the names of its files. */
export const searchedText = (content: string, files: readonly Pick<File, "name">[]) =>
  [content, ...files.map(({ name }) => name)].join("\n");

const TEXT_TYPE = /^text\/|^application\/(.+\+)?(json|xml)$|^image\/svg\+xml$/;

/** Whether a file of this media type can be read as text. */
export const isTextType = (type: string) => TEXT_TYPE.test(type);
