import { createCipheriv, createDecipheriv, createHash, createHmac, randomBytes } from "node:crypto";

/** What a sealed text is bound to: it opens only for the same owner and purpose. */
export interface SealBinding {
  owner_id: number;
  /** A provider's id, or what else the text is for, such as `webhook <id>`. */
  provider: string;
}

export type Vault = ReturnType<typeof createVault>;

const FORMAT = "v1";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const ALGORITHM = "aes-256-gcm";
/** Without it Node.js would also accept shorter tags, which are easier to forge. */
const OPTIONS = { authTagLength: TAG_BYTES };

const idOf = (master: Buffer) => createHash("sha256").update(master).digest("hex").slice(0, 12);
/** What texts begin with that are sealed with this master key. */
export const sealPrefix = (master: Buffer) => `${FORMAT}.${idOf(master)}`;
const boundTo = ({ owner_id, provider }: SealBinding) =>
  Buffer.from(`parley:${owner_id}:${provider}`);

const byId = (masters: readonly Buffer[]) =>
  new Map(masters.map((master) => [idOf(master), master]));

/** AES-256-GCM with a random nonce. `masters`: newest first. `reload` finds keys that were added since. */
export function createVault(masters: readonly Buffer[], reload?: () => readonly Buffer[]) {
  let known = byId(masters);

  function master(id: string): Buffer {
    if (!known.has(id) && reload) known = byId(reload());
    const found = known.get(id);
    if (!found) throw new Error(`no master key ${id} to open a sealed text with`);
    return found;
  }

  return {
    seal(secret: string, binding: SealBinding): string {
      if (reload) known = byId(reload());
      const [[id, newest] = []] = known;
      if (!id || !newest) throw new Error("there is no master key");
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(ALGORITHM, newest, nonce, OPTIONS).setAAD(boundTo(binding));
      const text = Buffer.concat([cipher.update(secret, "utf8"), cipher.final()]);
      const sealed = Buffer.concat([nonce, text, cipher.getAuthTag()]);
      return `${FORMAT}.${id}.${sealed.toString("base64url")}`;
    },
    /** Throws if it was sealed with another binding or with an unknown master key, or was tampered with. */
    open(sealed: string, binding: SealBinding): string {
      const [format, id = "", body = ""] = sealed.split(".");
      if (format !== FORMAT) throw new Error("a sealed text has an unknown format");
      const bytes = Buffer.from(body, "base64url");
      if (bytes.length < NONCE_BYTES + TAG_BYTES) throw new Error("a sealed text is too short");
      const nonce = bytes.subarray(0, NONCE_BYTES);
      const decipher = createDecipheriv(ALGORITHM, master(id), nonce, OPTIONS)
        .setAAD(boundTo(binding))
        .setAuthTag(bytes.subarray(-TAG_BYTES));
      const text = bytes.subarray(NONCE_BYTES, -TAG_BYTES);
      return Buffer.concat([decipher.update(text), decipher.final()]).toString("utf8");
    },
    /** A keyed hash: the same for the same text, and meaningless without the master key. */
    fingerprint(text: string): string {
      const [[, newest] = []] = known;
      if (!newest) throw new Error("there is no master key");
      return createHmac("sha256", newest).update(text).digest("base64url");
    },
    /** Whether it was sealed with the newest master key. */
    isCurrent: (sealed: string): boolean => sealed.split(".")[1] === known.keys().next().value,
  };
}

const MASK = "••••••••";

const TAIL_LENGTH = 4;

/** The part of a key that may be shown: a mask and the last characters, but never the whole key. */
export const keyTail = (key: string) =>
  key.length <= TAIL_LENGTH ? MASK : MASK + key.slice(-TAIL_LENGTH);
