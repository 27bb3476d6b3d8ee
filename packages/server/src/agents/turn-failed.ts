import type { TurnErrorCode } from "./providers/provider-errors.ts";

/** Ends a turn as failed for another reason than an error of the provider. The message says what a person can do. */
export class TurnFailed extends Error {
  readonly code: TurnErrorCode;
  constructor(code: TurnErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}
