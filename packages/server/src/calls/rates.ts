import type { Operation } from "@parley/protocol";
import type { AgentCaller, AnyCaller, Origin, SessionCaller } from "../security/caller.ts";
import type { Throttle } from "../security/throttle.ts";

/** Per account or, before sign-in, per network. `services`: per service key, whatever it calls. */
export type Rates = Record<Operation["rate"] | "services", Throttle> & {
  /** What the calls of an account cost together. */
  readonly costs: Throttle;
};

/** A rate that calls count against, and the key under which they do. */
export interface CountedRate {
  readonly name: keyof Rates;
  readonly throttle: Throttle;
  readonly key: string;
}

/** Counts a call against the rate of its caller. Throws `rate_limited`, which costs as much as a plain call. */
export function takeRate(rates: Rates, rate: Operation["rate"], caller: AnyCaller | AgentCaller) {
  const { throttle, key } = rateOf(rates, rate, caller);
  try {
    throttle.take(key);
  } catch (error) {
    const payer = payerOf(caller);
    if (payer !== null) rates.costs.charge(payer, 1);
    throw error;
  }
}

export const rateOf = (
  rates: Rates,
  name: Operation["rate"],
  caller: AnyCaller | AgentCaller,
): CountedRate =>
  "key" in caller
    ? { name: "services", throttle: rates.services, key: caller.key.name }
    : { name, throttle: rates[name], key: rateKey(caller) };

/** Who pays for a call: the caller, or before sign-in the network. */
type Payer = AnyCaller | AgentCaller | Pick<Origin, "network">;

/** The key of a budget. Nobody pays for the calls of service keys. */
export function payerOf(payer: Payer): string | null {
  if ("network" in payer) return `network ${payer.network}`;
  return "key" in payer ? null : rateKey(payer);
}

/** Bytes that cost as much as a plain call, to parse and to encode. */
const RECEIVED_BYTES_PER_COST = 4096;
const SENT_BYTES_PER_COST = 16_384;

/** Charges for the bytes of a request and of its answer. */
export function chargeBytes(
  { costs }: Pick<Rates, "costs">,
  payer: Payer,
  { received = 0, sent = 0 }: { received?: number; sent?: number },
): void {
  const cost =
    Math.floor(received / RECEIVED_BYTES_PER_COST) + Math.floor(sent / SENT_BYTES_PER_COST);
  const key = cost > 0 ? payerOf(payer) : null;
  if (key !== null) costs.charge(key, cost);
}

/** Takes a cost from the budget of a payer. Throws `rate_limited`. */
export function takeCost({ costs }: Pick<Rates, "costs">, payer: Payer, cost: number): void {
  const key = payerOf(payer);
  if (key !== null) costs.take(key, cost);
}

/** Milliseconds until a caller has paid for what is done already. */
export function owedMs({ costs }: Pick<Rates, "costs">, caller: AnyCaller | AgentCaller): number {
  const payer = payerOf(caller);
  return payer === null ? 0 : costs.owedMs(payer);
}

/** What the lists and objects of an input cost. */
export const costOfEntries = (each: Readonly<Record<string, number>>, input: object): number =>
  Object.entries(each).reduce((sum, [field, cost]) => {
    const value: unknown = Reflect.get(input, field);
    const isTree = typeof value === "object" && value !== null;
    return sum + (isTree ? Object.keys(value).length * cost : 0);
  }, 0);

/** A person's programs share a rate, however many agents there are, and leave the person's own alone. */
const rateKey = ({ kind, account }: SessionCaller | AgentCaller) =>
  kind === "agent" ? `agents of ${account.owner_id}` : `${account.id}`;
