import { urlOf } from "../compose.ts";
import { readConfig } from "../config.ts";
import { command } from "./command.ts";

/** The image has no HTTP client: this is its health check. */
export const ready = command({
  name: "ready",
  summary: "Check that the running server is ready.",
  details: "Asks /ready of the server at HOST and PORT. Prints nothing if it is ready.",
  examples: [{ line: "ready", summary: "As the health check of a container." }],
  async run() {
    const { host, port } = readConfig();
    const { ok } = await fetch(`${urlOf(host, port)}/ready`);
    if (!ok) throw new Error("not ready");
    return { json: { ready: true }, text: "" };
  },
});
