import { createHmac, randomBytes } from "node:crypto";

/** Signed messages as https://www.standardwebhooks.com specifies them. */

const PREFIX = "whsec_";
const SECRET_BYTES = 32;

export const newSecret = () => `${PREFIX}${randomBytes(SECRET_BYTES).toString("base64")}`;

export interface SignedMessage {
  /** The same for every attempt to deliver it. */
  readonly id: string;
  /** When the attempt is made. */
  readonly at: number;
  readonly body: string;
}

/** The headers of a message, signed with a secret of `newSecret`. */
export function signedHeaders({ id, at, body }: SignedMessage, secret: string) {
  const timestamp = Math.floor(at / 1000);
  const key = Buffer.from(secret.slice(PREFIX.length), "base64");
  const signature = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64");
  return {
    "content-type": "application/json",
    "webhook-id": id,
    "webhook-timestamp": `${timestamp}`,
    "webhook-signature": `v1,${signature}`,
  };
}
