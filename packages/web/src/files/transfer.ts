/** What a paste or a drop contains: its files, and a problem with those that cannot be sent. */
interface Received {
  files: globalThis.File[];
  problem?: string;
}

export const hasFiles = (data: DataTransfer | null) => data?.types.includes("Files") ?? false;

/** The files of a paste. Office programs add a picture of the text that they copy: the text is meant. */
export function pastedFiles(data: DataTransfer | null): globalThis.File[] {
  if (!data || !hasFiles(data)) return [];
  const isText = data.types.includes("text/plain") && data.types.includes("text/html");
  return isText ? [] : [...data.files];
}

/** The files of a drop; folders cannot be sent. */
export function droppedFiles(data: DataTransfer): Received {
  const items = [...data.items].filter(({ kind }) => kind === "file");
  const isFolder = (item: DataTransferItem) => item.webkitGetAsEntry()?.isDirectory ?? false;
  const files = items.flatMap((item) => (isFolder(item) ? [] : (item.getAsFile() ?? [])));
  return items.some(isFolder) ? { files, problem: "Folders cannot be sent." } : { files };
}
