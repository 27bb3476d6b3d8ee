import { isSameSecret } from "../security/tokens.ts";
import type { Vault } from "../security/vault.ts";

export type LinkPurpose = "upload" | "content" | "preview";

export type Links = ReturnType<typeof createLinks>;

/** Links that are permissions by themselves: whoever has one needs no token. */
export function createLinks(vault: Pick<Vault, "fingerprint">) {
  const signature = (purpose: LinkPurpose, fileId: string, expires: string) =>
    vault.fingerprint(`file link ${purpose} ${fileId} ${expires}`);
  return {
    /** The path and query of a link that is valid until `expiresAt`. */
    sign(purpose: LinkPurpose, fileId: string, expiresAt: number): string {
      const expires = `${Math.floor(expiresAt / 1000)}`;
      return `/files/${fileId}/${purpose}?expires=${expires}&signature=${signature(purpose, fileId, expires)}`;
    },
    /** Whether the query of a request allows it now. */
    verify(purpose: LinkPurpose, fileId: string, query: URLSearchParams, now = Date.now()) {
      const expires = query.get("expires") ?? "";
      if (!/^\d{1,12}$/.test(expires) || Number(expires) * 1000 <= now) return false;
      return isSameSecret(query.get("signature") ?? "", signature(purpose, fileId, expires));
    },
  };
}

/** Makes links for a reply that is sent now, absolute if the server knows its address. */
export function linksNow({ links }: { links: Links }, { base }: { base?: string | undefined }) {
  const end = linkEnd(Date.now());
  return {
    end,
    link: (purpose: "content" | "preview", fileId: string) =>
      `${base ?? ""}${links.sign(purpose, fileId, end)}`,
  };
}

/** How long links are valid at least. */
const LINK_MS = 10 * 60 * 1000;

/** The end of a link made now: the same within a window, so that browsers cache what they load. */
export const linkEnd = (now: number) => (Math.floor(now / LINK_MS) + 2) * LINK_MS;
