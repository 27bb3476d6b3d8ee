import type { TurnError, TurnErrorCode, TurnFacts, TurnParameters } from "@parley/protocol";
import { turnError } from "@parley/protocol/text/turn-sentences";

/** Ends a turn as failed. */
export class TurnFailed extends Error {
  readonly error: TurnError;
  readonly code: TurnErrorCode;

  constructor(error: TurnFacts | TurnError, options?: ErrorOptions) {
    super(turnError(error).message, options);
    this.error = turnError(error);
    this.code = error.code;
  }
}

export const interrupted = (reason: TurnParameters<"interrupted">["reason"]) =>
  new TurnFailed({ code: "interrupted", parameters: { reason } });

export const overBudget = (parameters: TurnParameters<"budget_exceeded">) =>
  new TurnFailed({ code: "budget_exceeded", parameters });
