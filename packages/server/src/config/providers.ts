import { AGENT_NAME } from "@parley/protocol";
import { z } from "zod";
import { isSandboxKey } from "../rules/sandbox.ts";
import { ConfigError, readJson, readSecretFile } from "./setting.ts";

const COUNT = "a whole number above 0";

/** Errors tell what a field must be by its description. */
const Provider = z.strictObject({
  display_name: z.string().min(1).max(64).describe("1 to 64 characters"),
  protocol: z.enum(["anthropic", "openai"]).describe('"anthropic" or "openai"'),
  base_url: z.url({ protocol: /^https?$/ }).describe("an http or https address"),
  model: z.string().min(1).describe("the provider's name of a model"),
  max_output_tokens: z.int().positive().default(4096).describe(COUNT),
  context_tokens: z.int().positive().default(100_000).describe(COUNT),
  /** False for models that cannot use tools: they are offered none. */
  tools: z.boolean().default(true).describe("true or false"),
  /** A file with a key of the operator's, for people who have stored none. */
  api_key_file: z.string().min(1).optional().describe("the path of a file"),
  /** What every agent of the provider is told before its owner's instructions. */
  instructions: z.string().trim().min(1).max(8000).optional().describe("1 to 8,000 characters"),
  /** Tokens that each person may use per day (UTC) at the operator's expense. */
  daily_tokens_per_user: z.int().positive().optional().describe(COUNT),
});
export type Provider = z.infer<typeof Provider>;

/** One line of printable ASCII characters, as providers accept it. */
const API_KEY_FORM = /^[\x21-\x7e]{1,1024}$/;

const defaultProviders: Record<string, z.input<typeof Provider>> = {
  claude: {
    display_name: "Claude",
    protocol: "anthropic",
    base_url: "https://api.anthropic.com",
    model: "claude-sonnet-4-5",
  },
  gpt: {
    display_name: "GPT",
    protocol: "openai",
    base_url: "https://api.openai.com/v1",
    model: "gpt-5",
  },
};

/** Parses PARLEY_PROVIDERS: a JSON object, or the path of a file with one. */
export function readProviders(value: string | undefined): ReadonlyMap<string, Provider> {
  const given = value ? readJson("PARLEY_PROVIDERS", value, "object") : defaultProviders;
  const parsed = z.record(z.string(), Provider).safeParse(given);
  if (!parsed.success) throw new ConfigError(`PARLEY_PROVIDERS: ${problemOf(parsed.error)}.`);
  const badId = Object.keys(parsed.data).find((id) => !AGENT_NAME.test(id));
  if (badId !== undefined) {
    throw new ConfigError(
      `PARLEY_PROVIDERS: an identifier has 2 to 32 characters, a-z, 0-9, _ and -, and begins with a letter, unlike "${badId}".`,
    );
  }
  const capped = Object.entries(parsed.data).find(
    ([, each]) => each.daily_tokens_per_user !== undefined && each.api_key_file === undefined,
  );
  if (capped) {
    throw new ConfigError(
      `PARLEY_PROVIDERS ${capped[0]}.daily_tokens_per_user: needs api_key_file, whose key it limits.`,
    );
  }
  return new Map(Object.entries(parsed.data));
}

/** Reads the operator's keys, by provider. They are not part of `Provider`, which may be logged. */
export function readOperatorKeys(
  providers: ReadonlyMap<string, Provider>,
  sandbox: boolean,
): ReadonlyMap<string, string> {
  const keys = new Map<string, string>();
  for (const [id, { api_key_file: file }] of providers) {
    if (file === undefined) continue;
    const setting = `PARLEY_PROVIDERS ${id}.api_key_file`;
    const what = "API key: a line of printable characters";
    const key = readSecretFile(setting, file, API_KEY_FORM, what);
    if (isSandboxKey(key) && !sandbox) {
      throw new ConfigError(`${setting} has a sandbox key, and PARLEY_SANDBOX is off.`);
    }
    keys.set(id, key);
  }
  return keys;
}

/** The first problem, and the remedy. It repeats no value. */
function problemOf({ issues }: z.ZodError): string {
  // A misspelled field may also be missing.
  const issue = issues.find(({ code }) => code === "unrecognized_keys") ?? issues[0];
  const [id, field] = issue?.path ?? [];
  if (id === undefined) return "the value must be a JSON object with an object for each provider";
  const { shape } = Provider;
  const known = field === undefined ? undefined : shape[field as keyof typeof shape];
  if (known) return `${String(id)}.${String(field)} must be ${known.description}`;
  const fields = `its fields are ${Object.keys(shape).join(", ")}`;
  if (issue?.code !== "unrecognized_keys") return `${String(id)} must be an object: ${fields}`;
  const [unknown = ""] = issue.keys;
  return `${String(id)} has the unknown field ${unknown}; ${fields}`;
}
