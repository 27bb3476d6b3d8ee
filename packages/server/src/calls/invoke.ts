import { declaredErrors, type Operation } from "@parley/protocol";
import type { Metrics } from "../observe/metrics.ts";
import { Failure, internalError, notFound } from "../rules/failure.ts";
import { similarName } from "../rules/similar-names.ts";
import type { AgentCaller, AnyCaller, DelegateCaller, Origin } from "../security/caller.ts";
import { type Awaitable, after } from "../store/awaitable.ts";
import { checkAccess, checkConfirmed, checkPolicy } from "./access.ts";
import type { Bound } from "./bind.ts";
import { unknownFields } from "./input.ts";
import type { Context, Needs } from "./needs.ts";
import {
  type CountedRate,
  costOfEntries,
  payerOf,
  type Rates,
  rateOf,
  takeCost,
  takeRate,
} from "./rates.ts";
import { takeDeclared } from "./throttles.ts";

/** One call of an operation, independent of the transport. */
export interface Call {
  readonly name: string;
  readonly origin: Origin;
  /** The id that an internal error carries both in the log and in the reply. */
  reference(): string;
  /** Throws `unauthorized`. */
  authenticate(): Awaitable<AnyCaller | AgentCaller>;
  /** Counts the call against the rate of its caller, instead of `takeRate`. Throws `rate_limited`. */
  countRate?(): void;
  /** Aborted when the client is gone. */
  signal(): AbortSignal;
  /** The raw input. Read only after access and rates are checked, so that a refused call costs little. */
  input(): Awaitable<unknown>;
  /** The name this transport gives to a field of the contract, for error messages. */
  spell?(field: string): string;
  /** Told the names of fields that have no effect, or not the whole one. */
  ignores?(fields: readonly string[]): void;
  /** Told the rate that the call counts against. */
  rated?(rate: CountedRate): void;
}

export type Outcome = { ok: true; result: unknown } | { ok: false; failure: Failure };

export type Invoke = (call: Call) => Promise<Outcome>;

/** What every call needs, whatever its operation does. */
export interface CallServices
  extends Pick<Needs, "store" | "config" | "audit" | "log" | "throttles"> {
  readonly rates: Rates;
  readonly metrics: Metrics;
}

/**
 * The single path of every call, for all transports: find the operation, authenticate, throttle, check
 * the access level, parse the input, check the policy, check that a sensitive call follows a sign-in,
 * count it against the throttles of its operation, run the handler, turn an error into a failure.
 */
export function createInvoke(registry: ReadonlyMap<string, Bound>, services: CallServices): Invoke {
  const { audit, config, log, metrics, rates, throttles } = services;

  /** Without promises as long as everything answers synchronously: this is the path of every message. */
  function perform(bound: Bound, call: Call, about: Context["about"]): Awaitable<unknown> {
    const { contract } = bound;
    if (contract.access === "public") {
      const { rate: name } = contract;
      const key = `${contract.name} ${call.origin.network}`;
      call.rated?.({ name, throttle: rates[name], key });
      rates[name].take(key);
      // Only what the network owes for the bytes of earlier calls holds it up.
      takeCost(rates, call.origin, 0);
      return run(bound, call, undefined, about);
    }
    return after(call.authenticate(), (caller) => {
      if (caller.kind !== "service") about(caller.account.username);
      call.rated?.(rateOf(rates, contract.rate, caller));
      if (call.countRate) call.countRate();
      else takeRate(rates, contract.rate, caller);
      takeCost(rates, caller, contract.cost.call);
      return after(checkAccess(services, contract, caller), () =>
        caller.kind === "delegate"
          ? after(recordDelegate(contract, call, caller), () => run(bound, call, caller, about))
          : run(bound, call, caller, about),
      );
    });
  }

  /** Nothing is done on behalf of a person that the audit log does not have. */
  function recordDelegate({ name }: Operation, { origin }: Call, { account, key }: DelegateCaller) {
    const details = { account: account.username, service_key: key.name, operation: name, origin };
    return audit.write((_, record) => record("acted_on_behalf", details));
  }

  function run(
    bound: Bound,
    call: Call,
    caller: AnyCaller | AgentCaller | undefined,
    about: Context["about"],
  ): Awaitable<unknown> {
    const { contract } = bound;
    return after(call.input(), (raw) => {
      const unknown = unknownFields(raw, bound.fields);
      if (unknown.length > 0) call.ignores?.(unknown);
      const input = bound.parse(raw, call.spell);
      const { limit = 0 } = input as { limit?: number };
      if (limit > config.limits.page_size) call.ignores?.(["limit"]);
      const { each } = contract.cost;
      if (each && caller) takeCost(rates, caller, costOfEntries(each, input as object));
      // Inherits what it needs: copying the fields for every call would cost more.
      const { origin, signal } = call;
      const charge = (cost: number) => {
        const payer = payerOf(caller ?? origin);
        if (payer !== null) rates.costs.charge(payer, cost);
      };
      const context = { __proto__: bound.needs, caller, origin, signal, about, charge };
      const handle = () => {
        if (contract.throttles.length > 0) takeDeclared({ throttles, caller, origin }, contract);
        return bound.handle(context as unknown as Parameters<Bound["handle"]>[0], input);
      };
      return after(checkPolicy(services, contract, caller, input), () =>
        contract.sensitive && caller && caller.kind !== "agent"
          ? after(checkConfirmed(services, caller), handle)
          : handle(),
      );
    });
  }

  function failureOf(error: unknown, call: Call, contract: Operation | undefined): Failure {
    if (!(error instanceof Failure)) return unexpected(error, call);
    const isDeclared = !contract || declaredErrors(contract).includes(error.code);
    if (isDeclared || !config.strictErrors) return error;
    const undeclared = `${contract.name} does not declare ${error.code}`;
    return unexpected(new Error(undeclared, { cause: error }), call);
  }

  function unexpected(error: unknown, call: Call): Failure {
    const reference = call.reference();
    log.error({ err: error, request_id: reference, operation: call.name }, "internal error");
    return internalError(reference);
  }

  return async (call) => {
    const started = performance.now();
    const bound = registry.get(call.name);
    const operation = bound?.contract.name ?? "unknown";
    let code: string = "ok";
    let account: string | undefined;
    try {
      if (!bound) {
        rates.operations.take(`unknown ${call.origin.network}`);
        throw unknownMethod(call.name.slice(0, 64), registry);
      }
      const result = await perform(bound, call, (username) => {
        account = username;
      });
      return { ok: true, result };
    } catch (error) {
      const failure = failureOf(error, call, bound?.contract);
      code = failure.code;
      if (code === "rate_limited") {
        const { origin } = call;
        const key = `${operation} ${account ?? origin.network}`;
        audit.recordOnce("throttled", key, { account: account ?? null, operation, origin });
      }
      return { ok: false, failure };
    } finally {
      metrics.called(operation, code, performance.now() - started);
    }
  };
}

function unknownMethod(name: string, registry: ReadonlyMap<string, Bound>): Failure {
  const names = new Map<string, string>();
  for (const [known, { contract }] of registry) {
    names.set(known, known);
    // A transport that does not know the socket names suggests its own.
    if (!registry.has(contract.socket)) names.set(contract.socket, known);
  }
  const similar = names.get(similarName(name, names.keys()) ?? "");
  return notFound(similar ? `method ${name} (did you mean ${similar}?)` : `method ${name}`);
}
