import { readFileSync } from "node:fs";
import {
  type ConnectionOptions,
  connect,
  credsAuthenticator,
  type NatsConnection,
  type Subscription,
} from "@nats-io/transport-node";
import type { Logger } from "../observe/log.ts";

const CONNECT_MS = 5000;
const RECONNECT_MS = 250;
const JITTER_MS = 500;
/** A server that does not answer two of these in a row is given up. */
const PING_MS = 5000;
/** Nobody waits longer for a server that is silent but not gone. */
const SETTLE_MS = 2000;

export interface NatsOptions {
  /** Such as `nats://host:4222`, with `user:password@` or `token@`; `tls://` insists on TLS. */
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

/** A connection that is always there to be used, and sometimes up. */
export interface Link {
  /** Dropped while the link is down. Never throws. */
  publish(subject: string, payload: string): void;
  /** Returns what ends it. It outlives lost connections. */
  subscribe(subject: string, listener: (payload: Uint8Array) => void): () => void;
  /** Resolves when the server has taken all that was subscribed to, or cannot be asked. */
  settled(): Promise<void>;
  /** Up, and everything subscribed to. */
  isReady(): boolean;
  /** Called each time the link has come up, once everything is subscribed to. */
  onUp(listener: () => void): void;
  close(): Promise<void>;
}

interface Wish {
  subject: string;
  listener(payload: Uint8Array): void;
  live: Subscription | undefined;
}

/** Throws when a file that is named cannot be read. Everything later is logged and tried again. */
export function natsLink(options: NatsOptions, name: string, log: Logger): Link {
  const settings = connectionOptions(options, name);
  const wishes = new Set<Wish>();
  const upListeners: (() => void)[] = [];
  let connection: NatsConnection | undefined;
  let up = false;
  let ready = false;
  let closing = false;
  let settling: Promise<void> | undefined;

  /** Connects, and anew should the client ever give up. */
  async function keepOpen(): Promise<void> {
    let failures = 0;
    while (!closing) {
      try {
        const opened = await connect(settings());
        if (closing) return await opened.close();
        connection = opened;
        failures = 0;
        for (const wish of wishes) attach(wish);
        void watch(opened);
        comeUp(opened);
        const reason = await opened.closed();
        if (!closing) log.error({ err: reason }, "the connection to NATS has ended");
      } catch (error) {
        log[failures++ === 0 ? "warn" : "debug"]({ err: error }, "NATS cannot be reached");
      }
      goDown();
      connection = undefined;
      if (!closing) await Bun.sleep(RECONNECT_MS + Math.random() * JITTER_MS);
    }
  }

  async function watch(opened: NatsConnection): Promise<void> {
    for await (const status of opened.status()) {
      if (status.type === "disconnect") {
        goDown();
        if (!closing) log.warn({ server: status.server }, "the connection to NATS is lost");
      } else if (status.type === "reconnect") {
        comeUp(opened);
      } else if (status.type === "error") {
        log.error({ err: status.error }, "NATS reported an error");
      }
    }
  }

  function comeUp(opened: NatsConnection): void {
    up = true;
    log.info({ server: opened.getServer() }, "connected to NATS");
    void link.settled().then(() => {
      ready = up;
      if (up) for (const listener of upListeners) listener();
    });
  }

  function goDown(): void {
    up = false;
    ready = false;
  }

  function attach(wish: Wish): void {
    try {
      wish.live = connection?.subscribe(wish.subject, {
        callback: (error, message) => {
          if (error) log.error({ err: error, subject: wish.subject }, "a subscription has ended");
          else wish.listener(message.data);
        },
      });
    } catch (error) {
      log.error({ err: error, subject: wish.subject }, "cannot subscribe");
    }
  }

  async function flush(): Promise<void> {
    settling = undefined;
    if (!up || !connection) return;
    let timer: NodeJS.Timeout | undefined;
    const enough = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, SETTLE_MS);
    });
    // It is rejected when the connection is lost, and then there is nothing to wait for.
    await Promise.race([connection.flush().catch(() => {}), enough]);
    clearTimeout(timer);
  }

  const link: Link = {
    publish(subject, payload) {
      if (!up) return;
      try {
        connection?.publish(subject, payload);
      } catch (error) {
        log.error({ err: error, subject }, "cannot publish");
      }
    },
    subscribe(subject, listener) {
      const wish: Wish = { subject, listener, live: undefined };
      wishes.add(wish);
      attach(wish);
      return () => {
        wishes.delete(wish);
        wish.live?.unsubscribe();
      };
    },
    settled() {
      // All who ask in the same turn share one question to the server.
      settling ??= Promise.resolve().then(flush);
      return settling;
    },
    isReady: () => ready,
    onUp(listener) {
      upListeners.push(listener);
      if (ready) listener();
    },
    async close() {
      closing = true;
      await flush();
      goDown();
      await connection?.close();
    },
  };
  void keepOpen();
  return link;
}

/** Files are read now, and again at every connection: certificates and credentials are renewed. */
function connectionOptions(
  { servers, credentialsFile, tls }: NatsOptions,
  name: string,
): () => ConnectionOptions {
  const urls = servers.map((server) => new URL(/:\/\//.test(server) ? server : `nats://${server}`));
  const named = urls.find(({ username }) => username !== "");
  const secure = tls !== undefined || urls.some(({ protocol }) => protocol === "tls:");
  for (const file of [credentialsFile, tls?.caFile, tls?.certFile, tls?.keyFile]) {
    if (file !== undefined) readFileSync(file);
  }
  return () => ({
    servers: urls.map(({ host }) => host),
    name,
    noEcho: true,
    noAsyncTraces: true,
    ignoreAuthErrorAbort: true,
    timeout: CONNECT_MS,
    maxReconnectAttempts: -1,
    reconnectTimeWait: RECONNECT_MS,
    reconnectJitter: JITTER_MS,
    reconnectJitterTLS: JITTER_MS,
    pingInterval: PING_MS,
    ...(named && login(named)),
    ...(credentialsFile && {
      authenticator: credsAuthenticator(() => readFileSync(credentialsFile)),
    }),
    ...(secure && { tls: files(tls ?? {}) }),
  });
}

function login({ username, password }: URL): ConnectionOptions {
  const user = decodeURIComponent(username);
  return password === "" ? { token: user } : { user, pass: decodeURIComponent(password) };
}

const files = ({ caFile, certFile, keyFile }: NatsTls) => ({
  ...(caFile && { caFile }),
  ...(certFile && { certFile }),
  ...(keyFile && { keyFile }),
});
