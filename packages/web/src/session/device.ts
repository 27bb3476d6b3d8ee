import type { OutputOf } from "@parley/protocol";

const keyOf = (username: string) => `parley.device.${username.toLowerCase()}`;

/**
 * The device that an earlier sign-in of this browser returned. With it, failed sign-ins elsewhere do
 * not throttle this browser.
 */
export function knownDevice(username: string): { device?: string } {
  const device = localStorage.getItem(keyOf(username));
  return device === null ? {} : { device };
}

/** Kept after signing out, when it is needed. It grants no access by itself. */
export function rememberDevice({ account, device }: OutputOf<"signIn">): void {
  localStorage.setItem(keyOf(account.username), device);
}
