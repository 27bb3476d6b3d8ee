import { type Config, readConfig } from "../../config/config.ts";
import { VERSION } from "../../observe/version.ts";
import { command, type Result } from "../command.ts";
import { reasonOf } from "../output.ts";
import { type Check, failed, ok } from "./check.ts";
import { checkDataFolder, checkFileStorage } from "./folders.ts";
import { checkIssuer, checkSignIn } from "./issuer.ts";
import { checkBus, checkPorts, checkProviders } from "./network.ts";
import { checkStore } from "./store.ts";

export const doctor = command({
  name: "doctor",
  summary: "Check the installation, and say what to do about problems.",
  details: `Checks settings, data folder, disk, store, master key, clock, files, bus, providers, sign-in and
ports. It changes nothing, sends no keys, and can run while the server runs. Exits with 1 if a check
failed.`,
  options: {
    fast: { type: "boolean", summary: "Skip the integrity check, which reads the whole database." },
  },
  examples: [
    { line: "doctor", summary: "With the settings of the server, as its user." },
    { line: "doctor --json", summary: "For a monitoring script." },
  ],
  async run({ options: { fast }, progress }) {
    const checks: Check[] = [];
    try {
      const config = readConfig();
      checks.push(ok("settings", `valid, for Parley ${VERSION}`));
      for (const [what, run] of Object.entries(plan(config, fast))) {
        progress(`checking ${what}`);
        checks.push(...(await run().catch((error) => [unexpected(what, error)])));
      }
    } catch (error) {
      checks.push(failed("settings", reasonOf(error), "Correct it and run this again."));
    }
    return resultOf(checks);
  },
});

const plan = (config: Config, fast: boolean): Record<string, () => Promise<Check[]>> => ({
  "the data folder": () => checkDataFolder(config),
  "the store": () => checkStore(config, !fast),
  "the file storage": () => checkFileStorage(config),
  "the bus": () => checkBus(config),
  "the providers": () => checkProviders(config),
  "the OIDC issuer": () => checkIssuer(config),
  "the ways to sign in": async () => checkSignIn(config),
  "the ports": () => checkPorts(config),
});

const unexpected = (what: string, error: unknown) =>
  failed(what, reasonOf(error), "Run this as the user of the server.");

function resultOf(checks: readonly Check[]): Result {
  const failures = checks.filter(({ status }) => status === "failed").length;
  const warnings = checks.filter(({ status }) => status === "warning").length;
  const width = Math.max(...checks.map(({ name }) => name.length));
  const lines = checks.map(
    ({ status, name, message, todo }) =>
      `${status.padEnd(7)}  ${name.padEnd(width)}  ${message}${todo && `${message.endsWith("?") ? "" : "."} ${todo}`}`,
  );
  const sum =
    failures + warnings === 0
      ? "Everything is in order."
      : `${failures} failed, ${warnings} warnings.`;
  return {
    json: { ok: failures === 0, checks },
    text: [...lines, sum].join("\n"),
    exitCode: failures === 0 ? 0 : 1,
  };
}
