import type { ClaimedTurn, InputOf } from "@parley/protocol";
import { callListener } from "../async/call-listener.ts";
import { pause, retryDelayMs } from "../async/retry.ts";
import { callError, isCallError, mayRetry, TurnFailure } from "../errors.ts";
import type { AgentOptions, AgentTurn, Operations } from "../types.ts";
import { AnswerWriter } from "./answer-writer.ts";
import { GIVE_UP_MS } from "./lease.ts";

/** A claimed turn, from its start to its end. */
export class RunningTurn {
  readonly #claimed: ClaimedTurn;
  readonly #operations: Operations;
  readonly #writer: AnswerWriter;
  readonly #stop = new AbortController();
  #usage: InputOf<"finishTurn">["usage"];
  /** Whether the turn is over for the service, or being ended, so that there is nothing to finish. */
  #isOver = false;

  constructor(claimed: ClaimedTurn, operations: Operations) {
    this.#claimed = claimed;
    this.#operations = operations;
    this.#writer = new AnswerWriter({
      write: (delta, offset) => operations.writeTurn({ turn_id: claimed.turn_id, delta, offset }),
      onLost: (error) => {
        this.#isOver = true;
        this.abort(error);
      },
    });
  }

  /** Tells the program to stop. */
  abort(reason: unknown): void {
    this.#stop.abort(reason);
  }

  /** The answer was stopped or deleted by somebody else. */
  endedElsewhere(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const error = callError("conflict", "the turn has ended");
    this.#writer.close(error);
    this.abort(error);
  }

  /** Runs the program, and ends the turn. Never rejects. */
  async run({ onTurn, onError }: Pick<AgentOptions, "onTurn" | "onError">): Promise<void> {
    const turn = this.#exposed();
    const report = (error: unknown) => callListener(() => onError?.(error, turn));
    try {
      await onTurn(turn);
      this.#stop.signal.throwIfAborted();
      await this.#writer.end();
      await this.#finish({ status: "complete" });
    } catch (error) {
      if (!this.#isOver) {
        // If the rest of the text cannot be stored, the answer ends without it.
        await this.#writer.end().catch(() => {});
        await this.#finish({ status: "failed", ...this.#sentence(error) }).catch(report);
      }
      if (!this.#stop.signal.aborted) report(error);
    } finally {
      this.#writer.close(callError("conflict", "the turn has ended"));
    }
  }

  #exposed(): AgentTurn {
    const { turn_id, conversation_id, message_id, answer_id, context } = this.#claimed;
    return {
      id: turn_id,
      conversationId: conversation_id,
      answerId: answer_id,
      message: context.find(({ id }) => id === message_id) ?? null,
      context,
      signal: this.#stop.signal,
      write: (text) => this.#writer.write(text),
      status: async (text) => {
        if (!this.#isOver) await this.#operations.setTurnStatus({ turn_id, text });
      },
      usage: (usage) => {
        this.#usage = usage;
      },
    };
  }

  /** What people are told. Other errors may contain what is not meant for them. */
  #sentence(error: unknown): { error?: string } {
    if (error instanceof TurnFailure) return { error: error.message };
    return this.#stop.signal.aborted ? { error: "The program of this agent was stopped." } : {};
  }

  /** Repeats the call while the service cannot be reached. A turn that has ended is left alone. */
  async #finish(ending: Pick<InputOf<"finishTurn">, "status" | "error">): Promise<void> {
    if (this.#isOver) return;
    const { turn_id } = this.#claimed;
    const usage = this.#usage && { usage: this.#usage };
    const until = Date.now() + GIVE_UP_MS;
    this.#isOver = true;
    for (let failures = 0; ; failures++) {
      try {
        return await this.#operations.finishTurn({ turn_id, ...ending, ...usage });
      } catch (error) {
        // An earlier attempt may have ended it without a reply.
        if (isCallError(error) && error.code === "conflict") return;
        if (!mayRetry(error) || Date.now() > until) throw error;
        await pause(retryDelayMs(failures, error));
      }
    }
  }
}
