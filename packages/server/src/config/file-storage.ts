import { resolve } from "node:path";
import { ConfigError, type Environment } from "./setting.ts";

/** Where the bytes of files are kept. */
export type FileStorage =
  | { readonly kind: "disk"; readonly folder: string }
  | { readonly kind: "s3"; readonly options: S3Options };

export interface S3Options {
  readonly endpoint?: string;
  readonly region?: string;
  readonly bucket: string;
  /** Before the name of every object; empty, or ends with a slash. */
  readonly prefix: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
  /** How long a request may take. Storing an object may take three times as long. */
  readonly timeoutMs: number;
}

/** The seconds that a request to S3 may take, unless the address says otherwise. */
const TIMEOUT_SECONDS = 20;
const SECONDS = /^[1-9]\d{0,2}$/;
const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;

/**
 * Parses PARLEY_FILES. Null: the server takes no files. Several nodes do not share a data folder, so
 * they take none unless a shared storage is named.
 */
export function readFileStorage(env: Environment, dataFolder: string): FileStorage | null {
  const isShared = Boolean(env.NATS_URL);
  const value = env.PARLEY_FILES || (isShared ? "off" : "disk");
  if (value === "off") return null;
  if (value === "disk") {
    if (isShared) {
      throw new ConfigError(
        "PARLEY_FILES must be disk:<shared folder> or s3://<bucket> on several nodes, not disk.",
      );
    }
    return { kind: "disk", folder: resolve(dataFolder, "files") };
  }
  const folder = /^disk:(.+)$/.exec(value)?.[1];
  if (folder !== undefined) return { kind: "disk", folder: resolve(folder) };
  if (value.startsWith("s3://") && URL.canParse(value)) {
    return { kind: "s3", options: readS3(new URL(value), env) };
  }
  throw new ConfigError(
    "PARLEY_FILES must be off, disk, disk:<folder> or s3://<bucket>[/<prefix>][?endpoint=…&region=…].",
  );
}

function readS3(url: URL, env: Environment): S3Options {
  const unknown = [...url.searchParams.keys()].filter(
    (name) => !["endpoint", "region", "timeout"].includes(name),
  );
  const endpoint = url.searchParams.get("endpoint");
  const region = url.searchParams.get("region") ?? env.AWS_REGION;
  const timeout = url.searchParams.get("timeout") ?? `${TIMEOUT_SECONDS}`;
  const isEndpoint = endpoint === null || /^https?:$/.test(URL.parse(endpoint)?.protocol ?? "");
  const isValid = BUCKET.test(url.hostname) && isEndpoint && SECONDS.test(timeout);
  if (!isValid || unknown.length > 0 || url.username) {
    throw new ConfigError(
      "PARLEY_FILES must be s3://<bucket>[/<prefix>][?endpoint=https://…&region=…&timeout=<seconds>].",
    );
  }
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = env;
  if (!accessKeyId || !secretAccessKey) {
    throw new ConfigError(
      "PARLEY_FILES names S3, which needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
    );
  }
  const prefix = url.pathname.replace(/^\/+|\/+$/g, "");
  return {
    bucket: url.hostname,
    timeoutMs: Number(timeout) * 1000,
    prefix: prefix === "" ? "" : `${prefix}/`,
    accessKeyId,
    secretAccessKey,
    ...(endpoint !== null && { endpoint }),
    ...(region !== undefined && { region }),
    ...(env.AWS_SESSION_TOKEN && { sessionToken: env.AWS_SESSION_TOKEN }),
  };
}
