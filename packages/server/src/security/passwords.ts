import { unavailable } from "../rules/failure.ts";
import { createFairQueue } from "./fair-queue.ts";

const algorithm = { algorithm: "argon2id", memoryCost: 19_456, timeCost: 2 } as const;

/**
 * A hash that no password is known for, with the cost of a real one. It is not computed: that would
 * delay the start of the server, or the first sign-in that needs it.
 */
const ZEROS = "A".repeat(43);
const DECOY = `$argon2id$v=19$m=${algorithm.memoryCost},t=${algorithm.timeCost},p=1$${ZEROS}$${ZEROS}`;

/** Hashing takes about 50 ms of a core and 19 MiB, so only a few run at once and the rest wait. */
const SIGN_INS_AT_ONCE = 3;
const SIGN_UPS_AT_ONCE = 2;
/** Per queue; beyond it calls are refused with `unavailable`. */
const MAX_WAITING = 200;

export type Passwords = ReturnType<typeof createPasswords>;

/**
 * Hashes passwords and compares them with hashes. Sign-ups have a queue of their own, so that a flood
 * of them does not delay sign-ins. Within each queue networks take turns.
 */
export function createPasswords() {
  const full = () => unavailable("too many people are signing in", 2);
  const signUps = createFairQueue({ running: SIGN_UPS_AT_ONCE, waiting: MAX_WAITING, full });
  const signIns = createFairQueue({ running: SIGN_INS_AT_ONCE, waiting: MAX_WAITING, full });
  return {
    /** For a new account. */
    hash: (password: string, network: string) => signUps(network, () => hashNow(password)),
    /** For an account that is signed in; waits in the queue of the sign-ins. */
    rehash: (password: string, network: string) => signIns(network, () => hashNow(password)),
    /** Takes the same time for an account that does not exist or has no password. */
    verify: (password: string, hash: string | null, network: string) =>
      signIns(network, async () => {
        const right = await Bun.password.verify(password, hash ?? DECOY);
        return right && hash !== null;
      }),
  };
}

export const hashNow = (password: string): Promise<string> =>
  Bun.password.hash(password, algorithm);
