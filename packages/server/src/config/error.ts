/** An invalid setting. The message is the sentence that the operator sees. */
export class ConfigError extends Error {
  override name = "ConfigError";
}

const user = () => `user ${process.getuid?.() ?? ""}`;

const FILE_PROBLEMS: readonly [code: RegExp, problem: () => string][] = [
  [/^ENOENT/, () => "it does not exist: correct the path, or create it"],
  [/^ENOTDIR/, () => "a part of the path is not a folder: correct the path"],
  [/^EISDIR/, () => "it is a folder: name a file"],
  [
    /^(EACCES|EPERM)/,
    () => `${user()}, who runs this, may not use it: change its owner or its mode`,
  ],
  [/^EROFS/, () => "its file system is read-only: mount it writable, or choose another place"],
  [/^(ENOSPC|SQLITE_FULL)/, () => "its disk is full: free space"],
  [/^SQLITE_IOERR/, () => "its disk is full or fails: free space, or check the disk"],
  [
    /^SQLITE_READONLY/,
    () => "it is read-only: change its owner, its mode or the mount of its disk",
  ],
  [/^SQLITE_(NOTADB|CORRUPT)/, () => 'it is damaged: run "parley doctor", and restore a backup'],
  [
    /^SQLITE_CANTOPEN/,
    () => "it cannot be opened: check that it is a file, its owner and its mode",
  ],
];

/** What is wrong with a file, folder or SQLite database, and the remedy, as the end of a sentence. */
export function fileProblem(error: unknown): string {
  const { code = "", message = String(error) } = error as { code?: string; message?: string };
  const known = FILE_PROBLEMS.find(([pattern]) => pattern.test(code));
  return known?.[1]() ?? message.replace(/\.$/, "");
}
