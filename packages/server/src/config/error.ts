/** An invalid setting. The message is the sentence that the operator sees. */
export class ConfigError extends Error {
  override name = "ConfigError";
}

const user = () => `user ${process.getuid?.() ?? ""}`;

const FILE_PROBLEMS: Record<string, () => string> = {
  ENOENT: () => "it does not exist: correct the path, or create it",
  ENOTDIR: () => "a part of the path is not a folder: correct the path",
  EISDIR: () => "it is a folder: name a file",
  EACCES: () => `${user()}, who runs this, may not use it: change its owner or its mode`,
  EPERM: () => `${user()}, who runs this, may not use it: change its owner or its mode`,
  EROFS: () => "its file system is read-only: mount it writable, or choose another place",
  ENOSPC: () => "its disk is full: free space",
};

/** What is wrong with a file or folder, and the remedy, as the end of a sentence. */
export function fileProblem(error: unknown): string {
  const { code = "", message = String(error) } = error as { code?: string; message?: string };
  return FILE_PROBLEMS[code]?.() ?? message.replace(/\.$/, "");
}
