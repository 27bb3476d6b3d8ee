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

interface LinkSubscription {
  readonly subject: string;
  readonly listener: (payload: Uint8Array) => void;
  /** The subscription of the current connection. */
  active: Subscription | undefined;
}

/** A connection to NATS that can be used at any time and reconnects by itself. */
export class NatsLink {
  readonly #settings: ReturnType<typeof connectionOptions>;
  readonly #log: Logger;
  readonly #subscriptions = new Set<LinkSubscription>();
  readonly #upListeners: (() => void)[] = [];
  #connection: NatsConnection | undefined;
  #isConnected = false;
  #ready = false;
  #isClosing = false;
  #flushing: Promise<void> | undefined;

  /** Throws when a configured file cannot be read. Later failures are logged and retried. */
  constructor(options: NatsOptions, name: string, log: Logger) {
    this.#settings = connectionOptions(options, name);
    this.#log = log;
    void this.#keepConnected();
  }

  /** Drops the payload while disconnected. Never throws. */
  publish(subject: string, payload: string): void {
    if (!this.#isConnected) return;
    try {
      this.#connection?.publish(subject, payload);
    } catch (error) {
      this.#log.error({ err: error, subject }, "NATS publish failed");
    }
  }

  /** Returns a function that unsubscribes. The subscription is restored after a reconnect. */
  subscribe(subject: string, listener: (payload: Uint8Array) => void): () => void {
    const subscription: LinkSubscription = { subject, listener, active: undefined };
    this.#subscriptions.add(subscription);
    this.#activate(subscription);
    return () => {
      this.#subscriptions.delete(subscription);
      subscription.active?.unsubscribe();
    };
  }

  /** Resolves when the server has processed all subscriptions made so far, or does not answer. */
  settled(): Promise<void> {
    // Calls in the same iteration of the event loop share one flush.
    this.#flushing ??= Promise.resolve().then(() => this.#flush());
    return this.#flushing;
  }

  /** Whether it is connected and all subscriptions are active. */
  isReady(): boolean {
    return this.#ready;
  }

  /** Calls the listener after each connect and reconnect, once all subscriptions are active. */
  onUp(listener: () => void): void {
    this.#upListeners.push(listener);
    if (this.isReady()) listener();
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    await this.#flush();
    this.#setDisconnected();
    await this.#connection?.close();
  }

  /** Connects, and connects again if the NATS client stops reconnecting. */
  async #keepConnected(): Promise<void> {
    let failures = 0;
    while (!this.#isClosing) {
      try {
        const connection = await connect(this.#settings());
        failures = 0;
        await this.#use(connection);
      } catch (error) {
        const level = failures++ === 0 ? "warn" : "debug";
        const { servers } = this.#settings();
        this.#log[level]({ err: error, servers }, "NATS_URL cannot be reached, trying again");
      }
      this.#setDisconnected();
      this.#connection = undefined;
      const delayMs = RECONNECT_DELAY_MS + Math.random() * RECONNECT_JITTER_MS;
      if (!this.#isClosing) await Bun.sleep(delayMs);
    }
  }

  /** Resolves when the connection is closed for good. */
  async #use(connection: NatsConnection): Promise<void> {
    if (this.#isClosing) return connection.close();
    this.#connection = connection;
    for (const subscription of this.#subscriptions) this.#activate(subscription);
    void this.#watchStatus(connection);
    this.#setConnected(connection);
    const reason = await connection.closed();
    if (!this.#isClosing) this.#log.error({ err: reason }, "NATS connection closed");
  }

  async #watchStatus(connection: NatsConnection): Promise<void> {
    for await (const status of connection.status()) {
      if (status.type === "disconnect") {
        this.#setDisconnected();
        if (!this.#isClosing) this.#log.warn({ server: status.server }, "NATS connection lost");
      } else if (status.type === "reconnect") {
        this.#setConnected(connection);
      } else if (status.type === "error") {
        this.#log.error({ err: status.error }, "NATS error");
      }
    }
  }

  #setConnected(connection: NatsConnection): void {
    this.#isConnected = true;
    this.#log.info({ server: connection.getServer() }, "NATS connected");
    void this.settled().then(() => {
      this.#ready = this.#isConnected;
      if (this.#isConnected) for (const listener of this.#upListeners) listener();
    });
  }

  #setDisconnected(): void {
    this.#isConnected = false;
    this.#ready = false;
  }

  #activate(subscription: LinkSubscription): void {
    const { subject, listener } = subscription;
    try {
      subscription.active = this.#connection?.subscribe(subject, {
        callback: (error, message) => {
          if (error) this.#log.error({ err: error, subject }, "NATS subscription failed");
          else listener(message.data);
        },
      });
    } catch (error) {
      this.#log.error({ err: error, subject }, "NATS subscription failed");
    }
  }

  async #flush(): Promise<void> {
    this.#flushing = undefined;
    if (!this.#isConnected || !this.#connection) return;
    const timeout = Promise.withResolvers<void>();
    const timer = setTimeout(timeout.resolve, FLUSH_TIMEOUT_MS);
    await Promise.race([this.#connection.flush().catch(ignoreLostConnection), timeout.promise]);
    clearTimeout(timer);
  }
}

/** A flush rejects when the connection is lost: then there is nothing to wait for. */
const ignoreLostConnection = () => undefined;
