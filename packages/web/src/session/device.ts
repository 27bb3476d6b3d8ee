import type { OutputOf } from "@parley/protocol";

const keyOf = (username: string) => `parley.device.${username.toLowerCase()}`;

/**
 * What an earlier sign-in of this browser returned. With it, failed attempts of others at the same
 * account do not make this browser wait.
 */
export function knownDevice(username: string): { device?: string } {
  const device = localStorage.getItem(keyOf(username));
  return device === null ? {} : { device };
}

/** Kept after signing out: that is when it is needed. It opens nothing by itself. */
export function rememberDevice({ account, device }: OutputOf<"signIn">): void {
  localStorage.setItem(keyOf(account.username), device);
}
