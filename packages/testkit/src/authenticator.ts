import { createHmac } from "node:crypto";
import type { Caller } from "./client.ts";

const STEP_MS = 30_000;
const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/** The authenticator app of a person: computes codes of a second factor. */
export class Authenticator {
  readonly #key: Buffer;
  #step = 0;

  constructor(secret: string) {
    const bits = [...secret].map((each) => ALPHABET.indexOf(each).toString(2).padStart(5, "0"));
    this.#key = Buffer.from(
      bits
        .join("")
        .match(/.{8}/g)
        ?.map((byte) => Number.parseInt(byte, 2)) ?? [],
    );
  }

  /**
   * A code that this did not return before: of the current time step, and at the next call of the one
   * after it, which servers accept too. Throws when it is too early for another one.
   */
  next(): string {
    const now = Math.floor(Date.now() / STEP_MS);
    this.#step = Math.max(this.#step + 1, now);
    if (this.#step > now + 1) throw new Error("two codes of this time step were used already");
    return this.#code(this.#step);
  }

  /** Six digits that are not a code of these minutes. */
  wrong(): string {
    const now = Math.floor(Date.now() / STEP_MS);
    const right = [-3, -2, -1, 0, 1, 2, 3].map((distance) => this.#code(now + distance));
    return ["000000", "111111", "222222"].find((code) => !right.includes(code)) ?? "333333";
  }

  #code(step: number): string {
    const counter = Buffer.alloc(8);
    counter.writeBigUInt64BE(BigInt(step));
    const mac = createHmac("sha1", this.#key).update(counter).digest();
    const number = mac.readUInt32BE(mac.readUInt8(19) & 15) & 0x7fff_ffff;
    return `${number % 1_000_000}`.padStart(6, "0");
  }
}

/** Turns the second factor of a person on. */
export async function addSecondFactor(person: Pick<Caller, "call">, password: string) {
  const { secret } = await person.call("beginSecondFactor", { password });
  const app = new Authenticator(secret);
  const confirmed = await person.call("confirmSecondFactor", { code: app.next() });
  return { secret, app, recoveryCodes: confirmed.recovery_codes };
}
