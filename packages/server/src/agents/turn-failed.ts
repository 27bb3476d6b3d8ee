import type { TurnErrorCode } from "./providers/provider.ts";

/** A turn that ends before the provider is called, with a sentence a person can act on. */
export class TurnFailed extends Error {
  readonly code: TurnErrorCode;
  constructor(code: TurnErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}
