import { createServer } from "node:net";
import { connect } from "@nats-io/transport-node";
import { connectionOptions } from "../../changes/nats-link.ts";
import { type Config, urlOf } from "../../config/config.ts";
import { VERSION } from "../../observe/version.ts";
import { isInUse } from "../../store/data-folder.ts";
import { reasonOf } from "../output.ts";
import { type Check, failed, ok, warning } from "./check.ts";
import { providersWithKeys } from "./master-key.ts";
import { readStored } from "./store.ts";

/** How long to wait for another service. */
const ANSWER_MS = 5000;

export async function checkBus({ nats }: Config): Promise<Check[]> {
  if (!nats) return [ok("bus", "not needed: this is the only node (NATS_URL is not set)")];
  try {
    const options = connectionOptions(nats, "parley doctor")();
    const link = await connect({ ...options, reconnect: false, timeout: ANSWER_MS });
    const ms = await link.rtt();
    const { version = "" } = link.info ?? {};
    await link.close();
    return [ok("bus", `NATS ${version} answers within ${Math.ceil(ms)} ms`)];
  } catch (error) {
    const todo = "Check NATS_URL, its credentials and NATS_TLS, and that a NATS server runs.";
    return [failed("bus", `NATS cannot be used: ${reasonOf(error)}`, todo)];
  }
}

/** Any answer will do: no key is sent. A provider that nobody has a key for keeps nothing from working. */
export async function checkProviders(config: Config): Promise<Check[]> {
  const { providers, operatorKeys } = config;
  if (providers.size === 0) return [ok("providers", "none")];
  const stored = await readStored(config);
  const used = new Set([
    ...operatorKeys.keys(),
    ...(stored ? providersWithKeys(config, stored.sealed) : []),
  ]);
  return Promise.all(
    [...providers].map(async ([id, { base_url }]) => {
      const name = `provider ${id}`;
      try {
        const { status } = await ask(base_url);
        const key = operatorKeys.has(id) ? "; the operator's key is read from its file" : "";
        return ok(name, `${base_url} answers (status ${status})${key}`);
      } catch (error) {
        const todo = "Allow outgoing connections to it, or remove it from PARLEY_PROVIDERS.";
        const message = `${base_url} cannot be reached: ${reasonOf(error)}`;
        if (used.has(id)) return failed(name, message, todo);
        return warning(name, `${message}; nobody has stored a key for it`, todo);
      }
    }),
  );
}

/** The server runs at its address, or the address is free. */
export async function checkPorts(config: Config): Promise<Check[]> {
  const checks = [await checkPort(config)];
  if (config.metrics) checks.push(await checkMetricsPort(config.metrics));
  return checks;
}

async function checkPort(config: Config): Promise<Check> {
  const { host, port } = config;
  const running = port === 0 ? null : await versionAt(urlOf(host, port));
  if (running === null) return checkFree("port", "PORT", host, port);
  const url = urlOf(host, port);
  if (!config.database && !isInUse(config)) {
    const todo =
      "Set PARLEY_DATA to its folder, or before a start here, PORT to another port. A restored copy needs neither.";
    return warning("port", `the server at ${url} has another data folder`, todo);
  }
  // Without an answer it is not ready.
  const response = await ask(`${url}/ready`).catch(() => null);
  if (response?.status !== 200) {
    const todo = "Look for errors in its log, and at the checks of the store and the bus here.";
    return failed("port", `the server at ${url} is not ready`, todo);
  }
  const { failing = [] } = (await response.json()) as { failing?: string[] };
  if (failing.length > 0) {
    const todo = "Look for its failures in the log of the server; often the disk is full.";
    return failed("port", `background work of the server fails: ${failing.join(", ")}`, todo);
  }
  if (running === VERSION) return ok("port", `the server runs at ${url}, version ${running}`);
  const message = `the server at ${url} has version ${running || "unknown"}, this program ${VERSION}`;
  return warning("port", message, "Restart the server with the version that is installed.");
}

/** The version of the Parley that listens there, or null if none does. */
async function versionAt(url: string): Promise<string | null> {
  try {
    const health: unknown = await (await ask(`${url}/health`)).json();
    const isParley = typeof health === "object" && health !== null && "ok" in health;
    if (!isParley) return null;
    return "version" in health && typeof health.version === "string" ? health.version : "";
  } catch {
    // Nobody listens there, or another program.
    return null;
  }
}

async function checkMetricsPort({ host, port }: { host: string; port: number }): Promise<Check> {
  // Without an answer nobody listens there, unless `checkFree` finds the port taken.
  const page = await ask(`${urlOf(host, port)}/metrics`).catch(() => null);
  if (page && (await page.text()).includes("parley_calls_total")) {
    return ok("metrics port", `metrics are at ${urlOf(host, port)}/metrics`);
  }
  return checkFree("metrics port", "PARLEY_METRICS_PORT", host, port);
}

/** Listens for a moment, to see whether the server could. */
async function checkFree(name: string, setting: string, host: string, port: number) {
  const server = createServer();
  const code = await new Promise<string | undefined>((resolve) => {
    server.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen(port, host, () => resolve(undefined));
  });
  server.close();
  const address = `${host}:${port}`;
  if (code === undefined) return ok(name, `${address} is free; no server runs there`);
  if (code === "EADDRINUSE") {
    const todo = `Stop the program that listens there, or set ${setting} to another port.`;
    return failed(name, `another program uses ${address}`, todo);
  }
  const todo = `Set ${setting} to a port that this user may use, and its host to an address of this machine.`;
  return failed(name, `the server could not listen on ${address}: ${code}`, todo);
}

export const ask = (url: string) =>
  fetch(url, { signal: AbortSignal.timeout(ANSWER_MS), redirect: "manual" });
