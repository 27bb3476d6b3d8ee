import { z } from "zod";
import type { SocketFailure } from "./errors.ts";

/** The longest `id` of a call, in characters. */
export const MAX_FRAME_ID_LENGTH = 1024;

/** A call, as a client sends it: `method` is the dotted or the HTTP name. The reply repeats `id`. */
export const RequestFrame = z.object({
  method: z.string(),
  params: z.unknown().optional(),
  id: z.union([z.string().max(MAX_FRAME_ID_LENGTH), z.int()]).nullish(),
});

export type FrameId = string | number;
export type SocketReply = ({ ok: true; result?: unknown } | SocketFailure) & {
  id?: FrameId;
  /** Fields of the params that the operation does not know, or whose value it reduces. */
  ignored?: readonly string[];
};

/** Why the server closed a socket, and what the client should do. */
export const closeCodes = {
  /** The server is stopping, or cannot deliver all events: reconnect with jitter, call getUpdates. */
  goingAway: 1001,
  /** A frame was too large: reconnect, and do not send it again. */
  messageTooBig: 1009,
  /** The token is no longer valid: sign in again. */
  signedOut: 4401,
  /** The client did not read fast enough: reconnect and call getUpdates. */
  tooSlow: 4408,
} as const;
