import type { Vault } from "./vault.ts";

/** No provider has such a name: a sealed key is no device, and a device no key. */
const PURPOSE = "sign-in device";

/**
 * What a client is given when it signs in, and shows when it signs in again: that it knew the
 * password once. It opens nothing; it only keeps the failures of others from being counted against it.
 */
export const newDevice = (vault: Vault, accountId: number): string =>
  vault.seal(Bun.randomUUIDv7(), { owner_id: accountId, provider: PURPOSE });

/** The device's id, or null when it is not one of this account's. */
export function deviceId(vault: Vault, accountId: number, device: string): string | null {
  try {
    return vault.open(device, { owner_id: accountId, provider: PURPOSE });
  } catch {
    // Made up, of another account, or sealed under a master key that is gone: like having none.
    return null;
  }
}
