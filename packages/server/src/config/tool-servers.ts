import { z } from "zod";
import { ConfigError, readJson } from "./setting.ts";

const SETTING = "PARLEY_TOOL_SERVERS";
const name = z.string().trim().min(1).max(64);

const HttpServer = z.strictObject({
  name,
  url: z.url({ protocol: /^https?$/ }),
  /** Sent as bearer token. */
  token: z
    .string()
    .regex(/^[\x21-\x7e]{1,4096}$/)
    .optional(),
});

const StdioServer = z.strictObject({
  name,
  command: z.string().min(1),
  args: z.array(z.string()).default([]),
  env: z.record(z.string(), z.string()).default({}),
});

/** A tool server that the operator offers to everybody: at an address, or a program that Parley runs. */
export type OperatorToolServer = z.infer<typeof HttpServer> | z.infer<typeof StdioServer>;

/** Parses PARLEY_TOOL_SERVERS: a JSON list, or the path of a file with one. Its errors repeat no value. */
export function readToolServers(value: string | undefined): readonly OperatorToolServer[] {
  if (!value) return [];
  const list = z.array(z.unknown()).safeParse(readJson(SETTING, value, "list"));
  if (!list.success) throw new ConfigError(`${SETTING} must be a JSON list.`);
  const servers = list.data.map(readServer);
  const taken = servers.find((server, place) =>
    servers.slice(0, place).some((other) => other.name === server.name),
  );
  if (taken) throw new ConfigError(`${SETTING} has two servers with the name "${taken.name}".`);
  return servers;
}

function readServer(given: unknown, place: number): OperatorToolServer {
  const isProgram = typeof given === "object" && given !== null && "command" in given;
  const parsed = (isProgram ? StdioServer : HttpServer).safeParse(given);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const path = [place, ...(issue?.path ?? [])].join(".");
  throw new ConfigError(
    `${SETTING} ${path} is wrong or missing. A server has name and url, and may have token; or name and command, and may have args and env.`,
  );
}
