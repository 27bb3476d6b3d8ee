import { ConfigError, readConfig, urlOf } from "../config/config.ts";
import { command } from "./command.ts";

/** The image has no HTTP client: this is its health check. */
export const ready = command({
  name: "ready",
  summary: "Check that the running server is ready.",
  details: "Asks /ready of the server at HOST and PORT. Prints nothing if it is ready.",
  examples: [{ line: "ready", summary: "As the health check of a container." }],
  async run() {
    const { host, port } = readConfig();
    const url = urlOf(host, port);
    // The error below says what to do.
    const response = await fetch(`${url}/ready`).catch(() => null);
    if (!response) {
      throw new ConfigError(
        `No server answers at ${url}. Start it, or set its HOST and PORT here.`,
      );
    }
    if (!response.ok) {
      throw new ConfigError(`The server at ${url} is not ready. Run "parley doctor" to see why.`);
    }
    return { json: { ready: true }, text: null };
  },
});
