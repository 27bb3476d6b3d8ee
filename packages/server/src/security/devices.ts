import type { Vault } from "./vault.ts";

/** Not a valid provider id, so that a sealed provider key is never accepted as a device, or vice versa. */
const PURPOSE = "sign-in device";

/**
 * A token that a client receives when it signs in and sends when it signs in again: proof that it
 * once knew the password. It grants no access. It exempts the client from limits caused by the failed
 * sign-ins of others.
 */
export const newDevice = (vault: Vault, accountId: number): string =>
  vault.seal(Bun.randomUUIDv7(), { owner_id: accountId, provider: PURPOSE });

/** The id of a device of the account; null for anything else. */
export function deviceId(vault: Vault, accountId: number, device: string): string | null {
  try {
    return vault.open(device, { owner_id: accountId, provider: PURPOSE });
  } catch {
    // Forged, of another account, or sealed with a master key that was removed: the same as no device.
    return null;
  }
}
