import type { LocalMessage } from "@parley/client";

/** What the composer is used for: a new message, a reply, or an edit. */
export type Writing =
  | { kind: "new" }
  | { kind: "reply"; message: LocalMessage }
  | { kind: "edit"; message: LocalMessage; refused?: Refusal };

/** An edit that the server did not accept. */
export interface Refusal {
  /** The text that was submitted. */
  content: string;
  reason: string;
}
