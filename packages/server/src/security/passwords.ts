import { unavailable } from "../failure.ts";

const algorithm = { algorithm: "argon2id", memoryCost: 19_456, timeCost: 2 } as const;
/** Hashing takes some 50 ms of a core and 19 MiB: so many at once, the rest in line. */
const AT_ONCE = 4;
const IN_LINE = 200;

export interface Passwords {
  hash(password: string): Promise<string>;
  /** Takes the same time for an account that is missing or has no password. */
  verify(password: string, hash: string | null): Promise<boolean>;
}

export function passwords(): Passwords {
  const decoy = Bun.password.hash(crypto.randomUUID(), algorithm);
  const line: (() => void)[] = [];
  let running = 0;

  async function inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    if (line.length >= IN_LINE) throw unavailable("too many people are signing in", 2);
    if (running >= AT_ONCE) await new Promise<void>((resolve) => line.push(resolve));
    running++;
    try {
      return await work();
    } finally {
      running--;
      line.shift()?.();
    }
  }

  return {
    hash: (password) => inTurn(() => Bun.password.hash(password, algorithm)),
    verify: (password, hash) =>
      inTurn(async () => {
        const right = await Bun.password.verify(password, hash ?? (await decoy));
        return right && hash !== null;
      }),
  };
}
