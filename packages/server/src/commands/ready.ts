import { urlOf } from "../compose.ts";
import { readConfig } from "../config.ts";

/** Asks the server that runs with the same settings. A container has no other HTTP client. */
export async function ready(): Promise<void> {
  const { host, port } = readConfig();
  const { ok } = await fetch(`${urlOf(host, port)}/ready`);
  if (!ok) throw new Error("not ready");
}
