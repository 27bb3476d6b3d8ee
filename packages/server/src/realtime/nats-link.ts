import { connect, type NatsConnection, type Subscription } from "@nats-io/transport-node";
import type { Logger } from "../observe/log.ts";
import {
  connectionOptions,
  type NatsOptions,
  RECONNECT_DELAY_MS,
  RECONNECT_JITTER_MS,
} from "./nats-options.ts";

/** How long to wait for a server that is connected but does not answer. */
const FLUSH_TIMEOUT_MS = 2000;

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
