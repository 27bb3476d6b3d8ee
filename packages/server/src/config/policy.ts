import { PolicyOverrides } from "@parley/protocol";
import { z } from "zod";
import type { ServerPolicy } from "../rules/policies.ts";
import { suggestion } from "../rules/similar-names.ts";
import { ConfigError, readJson } from "./setting.ts";

const SETTING = "PARLEY_POLICY";

const Setting = z.strictObject({
  applies_to: z.enum(["product", "everyone"]).default("product"),
  ...PolicyOverrides.shape,
});

/** Parses PARLEY_POLICY: a JSON object, or the path of a file with one. */
export function readPolicy(value: string | undefined): ServerPolicy {
  const given = value ? readJson(SETTING, value, "object") : {};
  const parsed = Setting.safeParse(given);
  if (parsed.success) {
    const { applies_to, ...overrides } = parsed.data;
    return { applies_to, overrides };
  }
  throw new ConfigError(`${SETTING} ${problemOf(parsed.error.issues[0])}`);
}

function problemOf(issue: z.core.$ZodIssue | undefined): string {
  const field = issue?.path.join(".");
  if (issue?.code === "unrecognized_keys") {
    const [name = ""] = issue.keys;
    return `names an unknown field, "${name}".${suggestion(name, Object.keys(Setting.shape))}`;
  }
  if (issue?.code === "invalid_value") return `${field} must be ${issue.values.join(" or ")}.`;
  return field ? `${field} must be true or false.` : "must be a JSON object.";
}
