import { type Everywhere, type FailureThrottle, failureThrottle } from "./throttle.ts";

/** Who tries to prove that they know a password, and from where. */
export interface Attempt {
  readonly username: string;
  readonly network: string;
  /** Whether there is a session of the account that was opened from that network. */
  readonly isKnownNetwork: boolean;
  /** A device that has signed in to the account before, or a session of it. */
  readonly device: string | null;
}

export interface Settle {
  /** The password was right. */
  succeeded(): void;
  /** The password was not looked at. */
  withdrawn(): void;
}

/**
 * Slows guessing down without letting anybody lock somebody else out.
 *
 * - A network that guesses at one username waits after 5 failures, up to 5 minutes.
 * - A network that guesses at many usernames waits after 100 failures, up to a minute.
 * - A username that is guessed at from many networks makes those wait, after 100 failures, up to a
 *   minute, that have not signed in to it before.
 * - A device that has signed in before counts only its own failures, and those of the account's
 *   other such devices.
 *
 * Everything is checked before anything is counted: an attempt that is refused costs nothing.
 */
export interface SignInGuard {
  /** Counts the attempt as failed until it is settled; throws `rate_limited`. */
  attempt(attempt: Attempt): Settle;
}

export function signInGuard(everywhere: (name: string) => Everywhere): SignInGuard {
  const tight = failureThrottle(5, 300, everywhere("sign-in failures by username and network"));
  const byNetwork = failureThrottle(100, 60, everywhere("sign-in failures by network"));
  const byUsername = failureThrottle(100, 60, everywhere("sign-in failures by username"));

  type Counter = readonly [throttle: FailureThrottle, key: string];
  function countersOf({ username, network, isKnownNetwork, device }: Attempt): Counter[] {
    if (device !== null) {
      return [
        [tight, `${username} device ${device}`],
        [byUsername, `${username} devices`],
      ];
    }
    return [
      [byNetwork, network],
      [tight, `${username} network ${network}`],
      ...(isKnownNetwork ? [] : [[byUsername, username] as const]),
    ];
  }

  return {
    attempt(attempt) {
      const counters = countersOf(attempt);
      for (const [throttle, key] of counters) throttle.check(key);
      for (const [throttle, key] of counters) throttle.count(key);
      const withdrawn = () => {
        for (const [throttle, key] of counters) throttle.forgive(key);
      };
      return {
        withdrawn,
        succeeded() {
          for (const [throttle, key] of counters) {
            if (throttle === tight) throttle.forget(key);
            else throttle.forgive(key);
          }
        },
      };
    },
  };
}
