import { existsSync } from "node:fs";
import { z } from "zod";
import { ConfigError } from "./error.ts";
import { parseJson, readNamedFile } from "./files.ts";

const Provider = z.strictObject({
  display_name: z.string().min(1).max(64),
  protocol: z.enum(["anthropic", "openai"]),
  base_url: z.url({ protocol: /^https?$/ }),
  model: z.string().min(1),
  max_output_tokens: z.int().positive().default(4096),
  context_tokens: z.int().positive().default(100_000),
});
export type Provider = z.infer<typeof Provider>;

const PROVIDER_ID = /^[a-z][a-z0-9_-]{1,31}$/;

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
  const given = value ? parseJson("PARLEY_PROVIDERS", fileOrText(value)) : defaultProviders;
  const parsed = z.record(z.string(), Provider).safeParse(given);
  if (!parsed.success) throw new ConfigError(`PARLEY_PROVIDERS ${firstIssue(parsed.error)}.`);
  const badId = Object.keys(parsed.data).find((id) => !PROVIDER_ID.test(id));
  if (badId !== undefined) {
    throw new ConfigError(
      `PARLEY_PROVIDERS: an identifier has 2 to 32 characters, a-z, 0-9, _ and -, and begins with a letter, unlike "${badId}".`,
    );
  }
  return new Map(Object.entries(parsed.data));
}

function fileOrText(value: string): string {
  if (value.trimStart().startsWith("{")) return value;
  if (!existsSync(value)) {
    throw new ConfigError(
      `PARLEY_PROVIDERS must be a JSON object or the path of one, and there is no file "${value}".`,
    );
  }
  return readNamedFile("PARLEY_PROVIDERS", value);
}

function firstIssue(error: z.ZodError): string {
  const [issue] = error.issues;
  return `${issue?.path.join(".") || "value"}: ${issue?.message ?? "is wrong"}`;
}
