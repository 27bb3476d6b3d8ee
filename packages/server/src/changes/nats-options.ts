import { readFileSync } from "node:fs";
import { type ConnectionOptions, credsAuthenticator } from "@nats-io/transport-node";

const CONNECT_TIMEOUT_MS = 5000;
export const RECONNECT_DELAY_MS = 250;
export const RECONNECT_JITTER_MS = 500;
/**
 * The client reconnects at the third ping if the two before are not answered: a server that hangs is
 * noticed within two seconds, and one that only pauses for a second is not given up.
 */
const PING_INTERVAL_MS = 600;
const MAX_UNANSWERED_PINGS = 2;

export interface NatsOptions {
  /** Such as `nats://host:4222`, with `user:password@` or `token@`; `tls://` requires TLS. */
  servers: readonly string[];
  /** A NATS `.creds` file. */
  credentialsFile?: string | undefined;
  tls?: NatsTls | undefined;
}

export interface NatsTls {
  caFile?: string | undefined;
  certFile?: string | undefined;
  keyFile?: string | undefined;
}

/**
 * Reads the files now, to fail early, and again for every new connection, because certificates and
 * credentials are renewed.
 */
export function connectionOptions(
  { servers, credentialsFile, tls }: NatsOptions,
  name: string,
): () => ConnectionOptions {
  const urls = servers.map((server) => new URL(/:\/\//.test(server) ? server : `nats://${server}`));
  const withUserInfo = urls.find(({ username }) => username !== "");
  const usesTls = tls !== undefined || urls.some(({ protocol }) => protocol === "tls:");
  for (const file of [credentialsFile, tls?.caFile, tls?.certFile, tls?.keyFile]) {
    if (file !== undefined) readFileSync(file);
  }
  return () => ({
    servers: urls.map(({ host }) => host),
    name,
    noEcho: true,
    noAsyncTraces: true,
    ignoreAuthErrorAbort: true,
    timeout: CONNECT_TIMEOUT_MS,
    maxReconnectAttempts: -1,
    reconnectTimeWait: RECONNECT_DELAY_MS,
    reconnectJitter: RECONNECT_JITTER_MS,
    reconnectJitterTLS: RECONNECT_JITTER_MS,
    pingInterval: PING_INTERVAL_MS,
    maxPingOut: MAX_UNANSWERED_PINGS,
    ...(withUserInfo && userInfo(withUserInfo)),
    ...(credentialsFile && {
      authenticator: credsAuthenticator(() => readFileSync(credentialsFile)),
    }),
    ...(usesTls && { tls: tlsFiles(tls ?? {}) }),
  });
}

function userInfo({ username, password }: URL): ConnectionOptions {
  const user = decodeURIComponent(username);
  return password === "" ? { token: user } : { user, pass: decodeURIComponent(password) };
}

const tlsFiles = ({ caFile, certFile, keyFile }: NatsTls) => ({
  ...(caFile && { caFile }),
  ...(certFile && { certFile }),
  ...(keyFile && { keyFile }),
});
