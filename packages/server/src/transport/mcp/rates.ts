import { type Operation, operations } from "@parley/protocol";
import { type Rates, takeCost, takeRate } from "../../calls/rates.ts";
import { Failure } from "../../rules/failure.ts";
import type { AgentCaller, AnyCaller } from "../../security/caller.ts";
import { listings, operationOf } from "./tools.ts";

/** A server of the protocol is made for each request, and each answer is encoded several times. */
const MESSAGE_COST = 5;

/** What a client may have sent as a message. Any of it may have another type. */
type Sent = {
  id?: unknown;
  method?: unknown;
  params?: { name?: unknown; arguments?: unknown };
} | null;
type SentCall = Sent & { readonly id: string | number };

/**
 * Counts every message once, whatever becomes of it. Returns the calls of tools beyond the
 * caller's rate, by their ids; throws `rate_limited` for any other message.
 */
export function takeRates(rates: Rates, body: unknown, caller: AnyCaller | AgentCaller) {
  const messages: Sent[] = Array.isArray(body) ? body : [body as Sent];
  const refused = new Map<string | number, Failure>();
  for (const message of messages) {
    try {
      takeRate(rates, rateOf(message), caller);
      takeCost(rates, caller, MESSAGE_COST);
    } catch (error) {
      if (!(error instanceof Failure) || !isToolCall(message)) throw error;
      refused.set(message.id, error);
    }
  }
  return refused;
}

/** The rate that a message counts against: a call of a tool counts as the operation that it calls. */
function rateOf(message: Sent): Operation["rate"] {
  const name = message?.method === "tools/call" && message.params?.name;
  const operation = typeof name === "string" ? operationOf.get(name) : undefined;
  return operation ? operations[operation].rate : "operations";
}

/** Whether the message is a call of a tool that exists, so that its refusal can be a result. */
const isToolCall = (message: Sent): message is SentCall =>
  message?.method === "tools/call" &&
  ["string", "number"].includes(typeof message.id) &&
  listings.some(({ name }) => name === message.params?.name) &&
  isRecord(message.params?.arguments ?? {});

const isRecord = (value: unknown) =>
  typeof value === "object" && value !== null && !Array.isArray(value);
