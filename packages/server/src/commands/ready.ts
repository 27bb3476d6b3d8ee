import { urlOf } from "../compose.ts";
import { readConfig } from "../config.ts";

/** Checks `/ready` of the server with the same settings: the container image has no HTTP client. */
export async function ready(): Promise<void> {
  const { host, port } = readConfig();
  const { ok } = await fetch(`${urlOf(host, port)}/ready`);
  if (!ok) throw new Error("not ready");
}
