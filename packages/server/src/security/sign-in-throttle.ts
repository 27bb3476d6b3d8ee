import { createFailureThrottle, type FailureThrottle } from "./failure-throttle.ts";
import type { LimitScope } from "./throttle.ts";

/** An attempt to prove knowledge of an account's password. */
export interface Attempt {
  readonly username: string;
  readonly network: string;
  /** Whether a session of the account was opened from that network before. */
  readonly isKnownNetwork: boolean;
  /** A device that has signed in to the account before, or a session of it. */
  readonly device: string | null;
}

export type PendingAttempt = ReturnType<SignInThrottle["attempt"]>;

export type SignInThrottle = ReturnType<typeof createSignInThrottle>;

const DAY_SECONDS = 24 * 60 * 60;

/**
 * Slows down password guessing without letting anybody lock others out of their accounts.
 *
 * - A network that guesses the password of one username waits after 5 failures, up to 5 minutes.
 * - A network that guesses at many usernames waits after 100 failures, up to a minute.
 * - After 100 failures for one username from many networks, networks that have not signed in to it
 *   before wait, up to a minute.
 * - A device that has signed in before is affected only by its own failures, and by those of the
 *   account's other such devices.
 * - Codes of a second factor that are wrong count like wrong passwords. Besides, whoever knows the
 *   password waits after 10 wrong codes, up to a day: of a million codes three are right at a time.
 *   Devices and networks that have signed in before are counted each for itself.
 *
 * All limits are checked before anything is counted, so a refused attempt counts nowhere.
 */
export function createSignInThrottle(scope: (name: string) => LimitScope) {
  const strict = createFailureThrottle(5, 300, scope("sign-in failures by username and network"));
  const byNetwork = createFailureThrottle(100, 60, scope("sign-in failures by network"));
  const byUsername = createFailureThrottle(100, 60, scope("sign-in failures by username"));
  const codes = createFailureThrottle(10, DAY_SECONDS, scope("second factor failures"));

  type Counter = readonly [throttle: FailureThrottle, key: string];
  function keysOf({ username, network, isKnownNetwork, device }: Attempt) {
    const own = `${username} ${device === null ? `network ${network}` : `device ${device}`}`;
    const counters: Counter[] = [[strict, own]];
    if (device !== null) counters.push([byUsername, `${username} devices`]);
    else {
      counters.unshift([byNetwork, network]);
      if (!isKnownNetwork) counters.push([byUsername, username]);
    }
    return { counters, codeKey: device === null && !isKnownNetwork ? username : own };
  }

  return {
    /** Forgets the passwords of an account that a network has guessed: its person has set a new one there. */
    passwordReset: (username: string, network: string) =>
      strict.forget(`${username} network ${network}`),
    /** Counts the attempt as failed until it succeeds or is withdrawn; throws `rate_limited`. */
    attempt(attempt: Attempt) {
      const { counters, codeKey } = keysOf(attempt);
      for (const [throttle, key] of counters) throttle.check(key);
      for (const [throttle, key] of counters) throttle.count(key);
      let hasCode = false;
      const withdrawn = () => {
        for (const [throttle, key] of counters) throttle.forgive(key);
        if (hasCode) codes.forgive(codeKey);
      };
      return {
        /** The password, or the code, was not checked, or a code is needed too. */
        withdrawn,
        /**
         * The password was right, and a code of the second factor is checked next. Counts the code as
         * wrong until the attempt succeeds; throws `rate_limited`.
         */
        checksCode() {
          try {
            codes.check(codeKey);
          } catch (error) {
            withdrawn();
            throw error;
          }
          codes.count(codeKey);
          hasCode = true;
        },
        /** The password was right, and the code too if one was checked. */
        succeeded() {
          if (hasCode) codes.forget(codeKey);
          for (const [throttle, key] of counters) {
            if (throttle === strict) throttle.forget(key);
            else throttle.forgive(key);
          }
        },
      };
    },
  };
}
