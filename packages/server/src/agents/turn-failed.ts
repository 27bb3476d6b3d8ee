import type { TurnErrorCode } from "./providers/provider-errors.ts";

/** A turn that fails before the provider is called. The message says what a person can do. */
export class TurnFailed extends Error {
  readonly code: TurnErrorCode;
  constructor(code: TurnErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}
