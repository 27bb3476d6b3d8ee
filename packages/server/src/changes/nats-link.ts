import { readFileSync } from "node:fs";
import {
  type ConnectionOptions,
  connect,
  credsAuthenticator,
  type NatsConnection,
  type Subscription,
} from "@nats-io/transport-node";
import type { Logger } from "../observe/log.ts";

/** How long to wait for a server that is connected but does not answer. */
const FLUSH_TIMEOUT_MS = 2000;

interface LinkSubscription {
  readonly subject: string;
  readonly listener: (payload: Uint8Array) => void;
  /** The subscription of the current connection. */
  active: Subscription | undefined;
}

/**
 * A connection to NATS that can be used at any time and reconnects by itself. Throws when a configured
 * file cannot be read. Later failures are logged and retried.
 */
export function createNatsLink(options: NatsOptions, name: string, log: Logger) {
  const settings = connectionOptions(options, name);
  const subscriptions = new Set<LinkSubscription>();
  const upListeners: (() => void)[] = [];
  let connection: NatsConnection | undefined;
  let isConnected = false;
  let isReady = false;
  let isClosing = false;
  let flushing: Promise<void> | undefined;
  void keepConnected();

  /** Connects, and connects again if the NATS client stops reconnecting. */
  async function keepConnected(): Promise<void> {
    let failures = 0;
    while (!isClosing) {
      try {
        const connected = await connect(settings());
        failures = 0;
        await use(connected);
      } catch (error) {
        const level = failures++ === 0 ? "warn" : "debug";
        const { servers } = settings();
        log[level]({ err: error, servers }, "NATS_URL cannot be reached, trying again");
      }
      setDisconnected();
      connection = undefined;
      const delayMs = RECONNECT_DELAY_MS + Math.random() * RECONNECT_JITTER_MS;
      if (!isClosing) await Bun.sleep(delayMs);
    }
  }

  /** Resolves when the connection is closed for good. */
  async function use(connected: NatsConnection): Promise<void> {
    if (isClosing) return connected.close();
    connection = connected;
    for (const subscription of subscriptions) activate(subscription);
    void watchStatus(connected);
    setConnected(connected);
    const reason = await connected.closed();
    if (!isClosing) log.error({ err: reason }, "NATS connection closed");
  }

  async function watchStatus(connected: NatsConnection): Promise<void> {
    for await (const status of connected.status()) {
      if (status.type === "disconnect") {
        setDisconnected();
        if (!isClosing) log.warn({ server: status.server }, "NATS connection lost");
      } else if (status.type === "reconnect") {
        setConnected(connected);
      } else if (status.type === "error") {
        log.error({ err: status.error }, "NATS error");
      }
    }
  }

  function setConnected(connected: NatsConnection): void {
    isConnected = true;
    log.info({ server: connected.getServer() }, "NATS connected");
    void settled().then(() => {
      isReady = isConnected;
      if (isConnected) for (const listener of upListeners) listener();
    });
  }

  function setDisconnected(): void {
    isConnected = false;
    isReady = false;
  }

  function activate(subscription: LinkSubscription): void {
    const { subject, listener } = subscription;
    try {
      subscription.active = connection?.subscribe(subject, {
        callback: (error, message) => {
          if (error) log.error({ err: error, subject }, "NATS subscription failed");
          else listener(message.data);
        },
      });
    } catch (error) {
      log.error({ err: error, subject }, "NATS subscription failed");
    }
  }

  /** Resolves when the server has processed all subscriptions made so far, or does not answer. */
  function settled(): Promise<void> {
    // Calls in the same iteration of the event loop share one flush.
    flushing ??= Promise.resolve().then(flush);
    return flushing;
  }

  async function flush(): Promise<void> {
    flushing = undefined;
    if (!isConnected || !connection) return;
    const timeout = Promise.withResolvers<void>();
    const timer = setTimeout(timeout.resolve, FLUSH_TIMEOUT_MS);
    await Promise.race([connection.flush().catch(ignoreLostConnection), timeout.promise]);
    clearTimeout(timer);
  }

  return {
    settled,
    /** Whether it is connected and all subscriptions are active. */
    isReady: () => isReady,
    /** Drops the payload while disconnected. Never throws. */
    publish(subject: string, payload: string): void {
      if (!isConnected) return;
      try {
        connection?.publish(subject, payload);
      } catch (error) {
        log.error({ err: error, subject }, "NATS publish failed");
      }
    },
    /** Returns a function that unsubscribes. The subscription is restored after a reconnect. */
    subscribe(subject: string, listener: (payload: Uint8Array) => void): () => void {
      const subscription: LinkSubscription = { subject, listener, active: undefined };
      subscriptions.add(subscription);
      activate(subscription);
      return () => {
        subscriptions.delete(subscription);
        subscription.active?.unsubscribe();
      };
    },
    /** Calls the listener after each connect and reconnect, once all subscriptions are active. */
    onUp(listener: () => void): void {
      upListeners.push(listener);
      if (isReady) listener();
    },
    async close(): Promise<void> {
      isClosing = true;
      await flush();
      setDisconnected();
      await connection?.close();
    },
  };
}

/** A flush rejects when the connection is lost: then there is nothing to wait for. */
const ignoreLostConnection = () => undefined;

const CONNECT_TIMEOUT_MS = 5000;
const RECONNECT_DELAY_MS = 250;
const RECONNECT_JITTER_MS = 500;
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

export type Subjects = ReturnType<typeof subjects>;

/** `prefix` keeps installations apart that share a NATS. */
export const subjects = (prefix: string) => ({
  conversation: (id: string) => `${prefix}.c.${id}`,
  user: (username: string) => `${prefix}.u.${username}`,
  node: (id: string) => `${prefix}.n.${id}`,
  nodes: `${prefix}.nodes`,
});
