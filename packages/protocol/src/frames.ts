import { z } from "zod";
import type { SocketFailure } from "./errors.ts";

/** What a client sends: a call by dotted or HTTP name. The reply echoes `id`. */
export const RequestFrame = z.object({
  method: z.string(),
  params: z.unknown().optional(),
  id: z.union([z.string().max(128), z.int()]).nullish(),
});

export type FrameId = string | number;
export type SocketReply = ({ ok: true; result?: unknown } | SocketFailure) & { id?: FrameId };

/** Why the server closed a socket, and so whether a client should come back. */
export const closeCodes = {
  /** The server is stopping: reconnect, with jitter. */
  goingAway: 1001,
  /** A frame was too large: reconnect, and do not send it again. */
  messageTooBig: 1009,
  /** The token is no longer valid: sign in again. */
  signedOut: 4401,
  /** The client did not read what it was sent: reconnect and call getUpdates. */
  tooSlow: 4408,
} as const;
