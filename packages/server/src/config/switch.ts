import { ConfigError } from "./error.ts";

/** Parses a setting that is `on` or `off`. */
export function readSwitch(name: string, value: string): boolean {
  if (value === "on" || value === "off") return value === "on";
  throw new ConfigError(`${name} must be on or off, not "${value}".`);
}
