import type { File } from "@parley/protocol";

/** The file as clients see it. */
export const publicFile = ({
  id,
  name,
  type,
  size,
  width,
  height,
  duration_ms,
  status,
  placeholder,
}: File): File => ({
  id,
  name,
  type,
  size,
  width,
  height,
  duration_ms,
  status,
  placeholder,
});

/** What is searched of a message: its text, and the names of its files. */
export const searchedText = (content: string, files: readonly Pick<File, "name">[]) =>
  [content, ...files.map(({ name }) => name)].join("\n");
