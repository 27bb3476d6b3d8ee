import { createHmac, hkdfSync, timingSafeEqual } from "node:crypto";

/** What a link allows. */
export type LinkPurpose = "upload" | "file" | "preview";

export interface Links {
  /** The path and query of a link that is valid until `expiresAt`. */
  sign(purpose: LinkPurpose, fileId: string, expiresAt: number): string;
  /** Whether the query of a request allows it now. */
  verify(purpose: LinkPurpose, fileId: string, query: URLSearchParams, now?: number): boolean;
}

const KEY_BYTES = 32;

/** Links that are permissions by themselves, signed with keys derived from the master keys, newest first. */
export function fileLinks(masters: readonly Buffer[]): Links {
  const keys = masters.map((master) =>
    Buffer.from(hkdfSync("sha256", master, "", "parley file links", KEY_BYTES)),
  );
  const signature = (key: Buffer, purpose: LinkPurpose, fileId: string, expires: string) =>
    createHmac("sha256", key).update(`${purpose}.${fileId}.${expires}`).digest();

  return {
    sign(purpose, fileId, expiresAt) {
      const [newest] = keys;
      if (!newest) throw new Error("there is no master key");
      const expires = `${Math.floor(expiresAt / 1000)}`;
      const signed = signature(newest, purpose, fileId, expires).toString("base64url");
      return `/files/${fileId}/${purpose}?expires=${expires}&signature=${signed}`;
    },
    verify(purpose, fileId, query, now = Date.now()) {
      const expires = query.get("expires") ?? "";
      const given = Buffer.from(query.get("signature") ?? "", "base64url");
      if (!/^\d{1,12}$/.test(expires) || Number(expires) * 1000 <= now) return false;
      return keys.some((key) => {
        const expected = signature(key, purpose, fileId, expires);
        return given.length === expected.length && timingSafeEqual(given, expected);
      });
    },
  };
}

/** How long links are valid at least. */
const LINK_MS = 10 * 60 * 1000;

/**
 * When a link ends that is made now: links of the same file are identical within a window, so that
 * browsers cache what they load.
 */
export const linkEnd = (now: number) => (Math.floor(now / LINK_MS) + 2) * LINK_MS;
