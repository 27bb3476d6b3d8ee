import type { ClaimedTurn, EventFrame } from "@parley/protocol";
import { callListener } from "../async/call-listener.ts";
import { pause, retryDelayMs } from "../async/retry.ts";
import { createOperations } from "../connection/operations.ts";
import { Transport } from "../connection/transport.ts";
import { isUnauthorized } from "../errors.ts";
import type { Agent, AgentOptions, Operations } from "../types.ts";
import { RunningTurn } from "./turn.ts";

/** Shorter than the timeout of a call, and than what proxies allow a response to take. */
const WAIT_SECONDS = 10;
const MAX_TURNS = 8;

/** Connects as an external agent, and answers its turns until it is closed. */
export function createAgent(options: AgentOptions): Agent {
  const worker = new AgentWorker(options);
  const methods: Omit<Agent, keyof Operations> = {
    closed: worker.closed,
    close: () => worker.close(),
  };
  return Object.setPrototypeOf(methods, worker.operations) as Agent;
}

class AgentWorker {
  readonly operations: Operations;
  readonly closed: Promise<void>;
  readonly #options: AgentOptions;
  readonly #transport: Transport;
  readonly #turns = new Map<string, RunningTurn>();
  readonly #running = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  #failures = 0;

  constructor(options: AgentOptions) {
    this.#options = options;
    this.#transport = new Transport(options, {
      onStatus: () => {},
      onOpen: () => {},
      onEvent: (frame) => this.#handleEvent(frame),
      catchUp: async () => true,
      onLost: () => {},
      onToken: () => {},
      onSignedOut: () => {},
    });
    this.operations = createOperations((name, input) => this.#transport.call(name, input));
    // Where there is no WebSocket, calls go over HTTP, and waiting for turns is a long poll.
    this.#transport.connect().catch(() => {});
    this.closed = this.#work();
    // A program may leave it to `onError`.
    this.closed.catch(() => {});
  }

  async close(): Promise<void> {
    this.#closing.abort();
    for (const turn of this.#turns.values()) turn.abort(new Error("the agent was closed"));
    await Promise.allSettled([...this.#running]);
    this.#transport.close();
  }

  /** Claims turns, as many at once as the options allow. */
  async #work(): Promise<void> {
    const { signal } = this.#closing;
    const { maxTurns = MAX_TURNS } = this.#options;
    while (!signal.aborted) {
      if (this.#running.size >= maxTurns) {
        await Promise.race([...this.#running]);
        continue;
      }
      const claimed = await this.#claim();
      if (claimed) this.#start(claimed);
    }
  }

  async #claim(): Promise<ClaimedTurn | null> {
    const { signal } = this.#closing;
    try {
      const claimed = await this.operations.claimTurn({ wait_seconds: WAIT_SECONDS });
      this.#failures = 0;
      return claimed;
    } catch (error) {
      if (signal.aborted) return null;
      if (isUnauthorized(error)) {
        callListener(() => this.#options.onError?.(error));
        throw error;
      }
      await pause(retryDelayMs(this.#failures++, error), signal);
      return null;
    }
  }

  #start(claimed: ClaimedTurn): void {
    const turn = new RunningTurn(claimed, this.operations);
    this.#turns.set(claimed.answer_id, turn);
    if (this.#closing.signal.aborted) turn.abort(new Error("the agent was closed"));
    const run = turn.run(this.#options).finally(() => {
      this.#turns.delete(claimed.answer_id);
      this.#running.delete(run);
    });
    this.#running.add(run);
  }

  /** Somebody stopped the answer, or deleted it. */
  #handleEvent(frame: EventFrame): void {
    if (frame.method === "events.messageComplete")
      this.#turns.get(frame.params.id)?.endedElsewhere();
    if (frame.method === "events.messageDeleted") {
      for (const id of frame.params.ids) this.#turns.get(id)?.endedElsewhere();
    }
  }
}
