import { count } from "./names.ts";

const UNITS = ["KB", "MB", "GB"];

/** A number of bytes for people: «312 bytes», «4.2 MB». */
export function formatSize(bytes: number): string {
  if (bytes < 1000) return count(bytes, "byte");
  let value = bytes / 1024;
  let unit = 0;
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  const digits = value >= 10 ? 0 : 1;
  return `${value.toLocaleString(undefined, { maximumFractionDigits: digits })} ${UNITS[unit]}`;
}
