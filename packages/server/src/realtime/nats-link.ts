import { readFileSync } from "node:fs";
import {
  type ConnectionOptions,
  connect,
  credsAuthenticator,
  type NatsConnection,
  type Subscription,
} from "@nats-io/transport-node";
import type { Logger } from "../observe/log.ts";

const CONNECT_TIMEOUT_MS = 5000;
const RECONNECT_DELAY_MS = 250;
const RECONNECT_JITTER_MS = 500;
/** The client reconnects when two pings in a row are not answered. */
const PING_INTERVAL_MS = 5000;
/** How long to wait for a server that is connected but does not answer. */
const FLUSH_TIMEOUT_MS = 2000;

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

/** A connection to NATS that can be used at any time and reconnects by itself. */
export interface Link {
  /** Drops the payload while disconnected. Never throws. */
  publish(subject: string, payload: string): void;
  /** Returns a function that unsubscribes. The subscription is restored after a reconnect. */
  subscribe(subject: string, listener: (payload: Uint8Array) => void): () => void;
  /** Resolves when the server has processed all subscriptions made so far, or does not answer. */
  settled(): Promise<void>;
  /** Whether it is connected and all subscriptions are active. */
  isReady(): boolean;
  /** Called after each connect and reconnect, once all subscriptions are active. */
  onUp(listener: () => void): void;
  close(): Promise<void>;
}

interface LinkSubscription {
  subject: string;
  listener(payload: Uint8Array): void;
  /** The subscription of the current connection. */
  active: Subscription | undefined;
}

/** Throws when a configured file cannot be read. Later failures are logged and retried. */
export function natsLink(options: NatsOptions, name: string, log: Logger): Link {
  const settings = connectionOptions(options, name);
  const subscriptions = new Set<LinkSubscription>();
  const upListeners: (() => void)[] = [];
  let connection: NatsConnection | undefined;
  let connected = false;
  let ready = false;
  let closing = false;
  let flushing: Promise<void> | undefined;

  /** Connects, and connects again should the NATS client stop reconnecting. */
  async function keepConnected(): Promise<void> {
    let failures = 0;
    while (!closing) {
      try {
        const opened = await connect(settings());
        if (closing) return await opened.close();
        connection = opened;
        failures = 0;
        for (const subscription of subscriptions) activate(subscription);
        void watchStatus(opened);
        setConnected(opened);
        const reason = await opened.closed();
        if (!closing) log.error({ err: reason }, "NATS connection closed");
      } catch (error) {
        log[failures++ === 0 ? "warn" : "debug"]({ err: error }, "NATS connection failed");
      }
      setDisconnected();
      connection = undefined;
      if (!closing) await Bun.sleep(RECONNECT_DELAY_MS + Math.random() * RECONNECT_JITTER_MS);
    }
  }

  async function watchStatus(opened: NatsConnection): Promise<void> {
    for await (const status of opened.status()) {
      if (status.type === "disconnect") {
        setDisconnected();
        if (!closing) log.warn({ server: status.server }, "NATS connection lost");
      } else if (status.type === "reconnect") {
        setConnected(opened);
      } else if (status.type === "error") {
        log.error({ err: status.error }, "NATS error");
      }
    }
  }

  function setConnected(opened: NatsConnection): void {
    connected = true;
    log.info({ server: opened.getServer() }, "NATS connected");
    void link.settled().then(() => {
      ready = connected;
      if (connected) for (const listener of upListeners) listener();
    });
  }

  function setDisconnected(): void {
    connected = false;
    ready = false;
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

  async function flush(): Promise<void> {
    flushing = undefined;
    if (!connected || !connection) return;
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, FLUSH_TIMEOUT_MS);
    });
    // A flush rejects when the connection is lost: then there is nothing to wait for.
    await Promise.race([connection.flush().catch(() => {}), timeout]);
    clearTimeout(timer);
  }

  const link: Link = {
    publish(subject, payload) {
      if (!connected) return;
      try {
        connection?.publish(subject, payload);
      } catch (error) {
        log.error({ err: error, subject }, "NATS publish failed");
      }
    },
    subscribe(subject, listener) {
      const subscription: LinkSubscription = { subject, listener, active: undefined };
      subscriptions.add(subscription);
      activate(subscription);
      return () => {
        subscriptions.delete(subscription);
        subscription.active?.unsubscribe();
      };
    },
    settled() {
      // Calls in the same turn of the event loop share one flush.
      flushing ??= Promise.resolve().then(flush);
      return flushing;
    },
    isReady: () => ready,
    onUp(listener) {
      upListeners.push(listener);
      if (ready) listener();
    },
    async close() {
      closing = true;
      await flush();
      setDisconnected();
      await connection?.close();
    },
  };
  void keepConnected();
  return link;
}

/**
 * Reads the files now, to fail early, and again for every new connection, because certificates and
 * credentials are renewed.
 */
function connectionOptions(
  { servers, credentialsFile, tls }: NatsOptions,
  name: string,
): () => ConnectionOptions {
  const urls = servers.map((server) => new URL(/:\/\//.test(server) ? server : `nats://${server}`));
  const withLogin = urls.find(({ username }) => username !== "");
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
    ...(withLogin && login(withLogin)),
    ...(credentialsFile && {
      authenticator: credsAuthenticator(() => readFileSync(credentialsFile)),
    }),
    ...(usesTls && { tls: tlsFiles(tls ?? {}) }),
  });
}

function login({ username, password }: URL): ConnectionOptions {
  const user = decodeURIComponent(username);
  return password === "" ? { token: user } : { user, pass: decodeURIComponent(password) };
}

const tlsFiles = ({ caFile, certFile, keyFile }: NatsTls) => ({
  ...(caFile && { caFile }),
  ...(certFile && { certFile }),
  ...(keyFile && { keyFile }),
});
