import type { closeCodes } from "@parley/protocol";

/** Close codes of every WebSocket. */
export const NORMAL = 1000;
export const ABNORMAL = 1006;

/**
 * Close codes of the contract, against which the compiler checks them. Importing the contract's own
 * list would add its schema library to every bundle.
 */
export const MESSAGE_TOO_BIG: (typeof closeCodes)["messageTooBig"] = 1009;
export const SIGNED_OUT: (typeof closeCodes)["signedOut"] = 4401;
