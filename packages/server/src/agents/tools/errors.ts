/** A contact with a tool server failed for a reason of ours. The message is a sentence for people. */
export class ContactFailed extends Error {
  override name = "ContactFailed";
}

export const ANSWER_TOO_LATE = "The server did not answer in time.";

/** Thrown when a server asks for something that no form can ask. The server is told why. */
export class FormRefused extends Error {
  override name = "FormRefused";
  /** Of JSON-RPC: the parameters are invalid. */
  readonly code = -32_602;
}
