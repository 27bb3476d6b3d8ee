/** How long a failed call is repeated: the service keeps a turn for 30 s without a call about it. */
export const GIVE_UP_MS = 25_000;
