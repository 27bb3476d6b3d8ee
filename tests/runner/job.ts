/** One run of a test file. */
export interface Job {
  file: string;
  /** Files that run in the same process after it. */
  more?: readonly string[];
  /** How an ordinary file runs once more in `all`. */
  variant?: "on two nodes" | "at full count";
}

export const filesOf = ({ file, more = [] }: Job): string[] => [file, ...more];

export const nameOf = ({ file, variant, more = [] }: Job): string => {
  if (variant) return `${file} ${variant}`;
  return more.length > 0 ? `${file} and ${more.length} others` : file;
};
