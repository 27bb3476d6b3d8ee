import type { ConfirmBy } from "@parley/protocol";
import { sharedValue } from "../lib/shared-value.ts";

interface Asked {
  by: ConfirmBy;
  answer: (isConfirmed: boolean) => void;
}

/** How the person is asked to confirm who they are; null if they are not. */
export const askedToConfirm = sharedValue<Asked | null>(null);

let asking: Promise<boolean> | null = null;

/** Asks the person, once for all calls that wait for it. Resolves with whether they have confirmed. */
export function askToConfirm(by: ConfirmBy): Promise<boolean> {
  asking ??= new Promise<boolean>((resolve) => askedToConfirm.set({ by, answer: resolve })).finally(
    () => {
      asking = null;
      askedToConfirm.set(null);
    },
  );
  return asking;
}
