import { type Access, declaredErrors, type Operation } from "@parley/protocol";
import type { z } from "zod";
import type { ExternalTurns } from "./agents/external/index.ts";
import type { KeyTester } from "./agents/key-test.ts";
import type { ModelLists } from "./agents/model-lists.ts";
import type { ToolServers } from "./agents/tools/servers.ts";
import type { ToolRequests } from "./agents/tools/tool-requests.ts";
import type { Changes } from "./changes/stream.ts";
import type { Config } from "./config.ts";
import type { Exports } from "./exports/exports.ts";
import type { Files } from "./files/service.ts";
import type { IncomingHooks } from "./inbound/incoming-hooks.ts";
import type { AuditLog } from "./observe/audit-log.ts";
import type { Logger } from "./observe/log.ts";
import type { Metrics } from "./observe/metrics.ts";
import {
  fieldsOf,
  type InputParser,
  inputParser,
  type KnownFields,
  unknownFields,
} from "./operation/input.ts";
import type { Webhooks } from "./outbound/webhooks.ts";
import type { Hub } from "./realtime/hub.ts";
import { Failure, notFound } from "./rules/failure.ts";
import { similarName } from "./rules/similar-name.ts";
import { checkAccess, checkPolicy } from "./security/access.ts";
import type { Authenticator } from "./security/authenticate.ts";
import type {
  AgentCaller,
  AnyCaller,
  Caller,
  DelegateCaller,
  Origin,
  Participant,
  ServiceCaller,
  SessionCaller,
} from "./security/caller.ts";
import { checkConfirmed } from "./security/confirmation.ts";
import type { FailureThrottle } from "./security/failure-throttle.ts";
import type { OidcAccounts } from "./security/oidc-accounts.ts";
import type { OidcSignIn } from "./security/oidc-sign-in.ts";
import type { Passwords } from "./security/passwords.ts";
import type { ServiceKeys } from "./security/service-keys.ts";
import type { SignInThrottle } from "./security/sign-in-throttle.ts";
import type { Throttle } from "./security/throttle.ts";
import type { Vault } from "./security/vault.ts";
import { type Awaitable, after } from "./store/awaitable.ts";
import type { Store } from "./store/store.ts";
import type { Erasures } from "./upkeep/erasures.ts";

/** Everything handlers may use. `compose()` builds it once, at startup. */
export interface Services {
  config: Config;
  store: Store;
  hub: Hub;
  changes: Pick<Changes, "signal">;
  passwords: Passwords;
  authenticator: Authenticator;
  oidcAccounts: OidcAccounts;
  /** Null: no issuer is configured for sign-in in a browser. */
  oidcSignIn: OidcSignIn | null;
  vault: Vault;
  webhooks: Webhooks;
  incomingHooks: IncomingHooks;
  serviceKeys: ServiceKeys;
  exports: Exports;
  /** Null: the server takes no files. */
  files: Files | null;
  erasures: Erasures;
  /** Per account or, before sign-in, per network. `services`: per service key, whatever it calls. */
  rates: Record<Operation["rate"] | "services", Throttle> & {
    /** What the calls of an account cost together. */
    costs: Throttle;
  };
  externalTurns: ExternalTurns;
  toolRequests: ToolRequests;
  keyTester: KeyTester;
  modelLists: ModelLists;
  /** Limits key tests and new lists of models per account: each one calls the provider. */
  keyTests: Throttle;
  toolServers: ToolServers;
  /** Limits contacts with tool servers per account. */
  toolContacts: Throttle;
  /** Limits reports of messages per account. */
  reports: Throttle;
  /** Limits the people per account who are added to groups and do not know it. */
  strangers: Throttle;
  /** Limits links to their own data per account. */
  exportLinks: Throttle;
  /** Limits the accounts that a person creates for agents and incoming hooks: their names stay taken. */
  accountCreations: Throttle;
  signInThrottle: SignInThrottle;
  /** Makes networks wait that guess invite codes. */
  inviteCodes: FailureThrottle;
  /** Makes networks wait that guess tokens of reset links. */
  resetTokens: FailureThrottle;
  /** Limits sign-ups per network. */
  signUps: Throttle;
  log: Logger;
  audit: AuditLog;
  metrics: Metrics;
}

export interface Context<Who = Caller> extends Services {
  readonly caller: Who;
  readonly origin: Origin;
  /** Aborted when the client is gone: nobody reads the answer then. */
  readonly signal: () => AbortSignal;
  /** Charges the caller for work that the cost of the operation does not include. */
  readonly charge: (cost: number) => void;
  /** Names the existing account that a call before sign-in is about, for the audit log. */
  readonly about: (username: string) => void;
}

export type Handler = (context: Context, input: unknown) => Promise<unknown>;

/** An operation of the contract with its handler. */
export interface Bound {
  readonly contract: Operation;
  readonly handle: Handler;
  readonly parse: InputParser;
  readonly fields: KnownFields;
}

/** The caller that a handler gets, by the access level of its operation. */
interface CallerOf extends Record<Access, unknown> {
  public: undefined;
  session: Caller;
  agent: AgentCaller;
  service: ServiceCaller;
  operator: AnyCaller;
}
type CallerFor<Contract extends Operation> = Contract["agents"] extends true
  ? Participant
  : CallerOf[Contract["access"]];
type ResultOf<Contract extends Operation> = Contract["output"] extends z.ZodType
  ? Promise<z.output<Contract["output"]>>
  : Promise<void>;

export function bind<Contract extends Operation>(
  contract: Contract,
  handle: (
    context: Context<CallerFor<Contract>>,
    input: z.output<Contract["input"]>,
  ) => ResultOf<Contract>,
): Bound {
  const { input } = contract;
  return {
    contract,
    handle: handle as Handler,
    parse: inputParser(input),
    fields: fieldsOf(input),
  };
}

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

/** A rate that calls count against, and the key under which they do. */
export interface CountedRate {
  readonly name: keyof Services["rates"];
  readonly throttle: Throttle;
  readonly key: string;
}

export type Outcome = { ok: true; result: unknown } | { ok: false; failure: Failure };

export type Invoke = (call: Call) => Promise<Outcome>;

/** Counts a call against the rate of its caller. Throws `rate_limited`. */
export function takeRate(
  rates: Services["rates"],
  rate: Operation["rate"],
  caller: AnyCaller | AgentCaller,
): void {
  const { throttle, key } = rateOf(rates, rate, caller);
  throttle.take(key);
}

const rateOf = (
  rates: Services["rates"],
  name: Operation["rate"],
  caller: AnyCaller | AgentCaller,
): CountedRate =>
  "key" in caller
    ? { name: "services", throttle: rates.services, key: caller.key.name }
    : { name, throttle: rates[name], key: rateKey(caller) };

/** Who pays for a call. Nobody pays for the calls of service keys, nor before sign-in. */
const payerOf = (caller: AnyCaller | AgentCaller | undefined): string | null =>
  caller === undefined || "key" in caller ? null : rateKey(caller);

/** Bytes that cost as much as a plain call, to parse and to encode. */
const RECEIVED_BYTES_PER_COST = 4096;
const SENT_BYTES_PER_COST = 16_384;

/** Charges a caller for the bytes of a request and of its answer. */
export function chargeBytes(
  { costs }: Pick<Services["rates"], "costs">,
  caller: AnyCaller | AgentCaller | undefined,
  { received = 0, sent = 0 }: { received?: number; sent?: number },
): void {
  const cost =
    Math.floor(received / RECEIVED_BYTES_PER_COST) + Math.floor(sent / SENT_BYTES_PER_COST);
  const payer = payerOf(caller);
  if (payer !== null && cost > 0) costs.charge(payer, cost);
}

/** Takes a cost from the budget of a caller. Throws `rate_limited`. */
export function takeCost(
  { costs }: Pick<Services["rates"], "costs">,
  caller: AnyCaller | AgentCaller,
  cost: number,
): void {
  const payer = payerOf(caller);
  if (payer !== null) costs.take(payer, cost);
}

/** Milliseconds until a caller has paid for what is done already. */
export function owedMs(
  { costs }: Pick<Services["rates"], "costs">,
  caller: AnyCaller | AgentCaller,
): number {
  const payer = payerOf(caller);
  return payer === null ? 0 : costs.owedMs(payer);
}

/** What the lists and objects of an input cost. */
const costOfEntries = (each: Readonly<Record<string, number>>, input: object): number =>
  Object.entries(each).reduce((sum, [field, cost]) => {
    const value: unknown = Reflect.get(input, field);
    const isTree = typeof value === "object" && value !== null;
    return sum + (isTree ? Object.keys(value).length * cost : 0);
  }, 0);

/** A person's programs share a rate, however many agents there are, and leave the person's own alone. */
const rateKey = ({ kind, account }: SessionCaller | AgentCaller) =>
  kind === "agent" ? `agents of ${account.owner_id}` : `${account.id}`;

/**
 * The single path of every call, for all transports: find the operation, authenticate, throttle, check
 * the access level, parse the input, check the policy, check that a sensitive call follows a sign-in, run
 * the handler, turn an error into a failure.
 */
export function invoker(registry: ReadonlyMap<string, Bound>, services: Services): Invoke {
  const { audit, metrics } = services;
  return async (call) => {
    const started = performance.now();
    const bound = registry.get(call.name);
    const operation = bound?.contract.name ?? "unknown";
    let code: string = "ok";
    let account: string | undefined;
    try {
      if (!bound) {
        services.rates.operations.take(`unknown ${call.origin.network}`);
        throw unknownMethod(call.name.slice(0, 64), registry);
      }
      const result = await perform(services, bound, call, (username) => {
        account = username;
      });
      return { ok: true, result };
    } catch (error) {
      const failure = failureOf(services, error, call, bound?.contract);
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

/** Without promises as long as everything answers synchronously: this is the path of every message. */
function perform(
  services: Services,
  bound: Bound,
  call: Call,
  about: Context["about"],
): Awaitable<unknown> {
  const { contract } = bound;
  const { rates } = services;
  if (contract.access === "public") {
    const { rate: name } = contract;
    const key = `${contract.name} ${call.origin.network}`;
    call.rated?.({ name, throttle: rates[name], key });
    rates[name].take(key);
    return run(services, bound, call, undefined, about);
  }
  return after(call.authenticate(), (caller) => {
    if (caller.kind !== "service") about(caller.account.username);
    call.rated?.(rateOf(rates, contract.rate, caller));
    if (call.countRate) call.countRate();
    else takeRate(rates, contract.rate, caller);
    takeCost(rates, caller, contract.cost.call);
    return after(checkAccess(services, contract, caller), () =>
      caller.kind === "delegate"
        ? after(recordDelegate(services, contract, call, caller), () =>
            run(services, bound, call, caller, about),
          )
        : run(services, bound, call, caller, about),
    );
  });
}

/** Nothing is done on behalf of a person that the audit log does not have. */
function recordDelegate(
  { audit }: Services,
  { name }: Operation,
  { origin }: Call,
  { account, key }: DelegateCaller,
) {
  const details = { account: account.username, service_key: key.name, operation: name, origin };
  return audit.write((_, record) => record("acted_on_behalf", details));
}

function run(
  services: Services,
  bound: Bound,
  call: Call,
  caller: AnyCaller | AgentCaller | undefined,
  about: Context["about"],
): Awaitable<unknown> {
  return after(call.input(), (raw) => {
    const unknown = unknownFields(raw, bound.fields);
    if (unknown.length > 0) call.ignores?.(unknown);
    const input = bound.parse(raw, call.spell);
    const { limit = 0 } = input as { limit?: number };
    if (limit > services.config.limits.page_size) call.ignores?.(["limit"]);
    const { each } = bound.contract.cost;
    if (each && caller) takeCost(services.rates, caller, costOfEntries(each, input as object));
    // Inherits the services: copying some twenty fields for every call would cost more.
    const { origin, signal } = call;
    const charge = (cost: number) => {
      const payer = payerOf(caller);
      if (payer !== null) services.rates.costs.charge(payer, cost);
    };
    const context = { __proto__: services, caller, origin, signal, about, charge };
    const handle = () => bound.handle(context as unknown as Context, input);
    return after(checkPolicy(services, bound.contract, caller, input), () =>
      bound.contract.sensitive && caller && caller.kind !== "agent"
        ? after(checkConfirmed(services, caller), handle)
        : handle(),
    );
  });
}

function failureOf(
  services: Services,
  error: unknown,
  call: Call,
  contract: Operation | undefined,
): Failure {
  if (!(error instanceof Failure)) return unexpected(services, error, call);
  const isDeclared = !contract || declaredErrors(contract).includes(error.code);
  if (isDeclared || !services.config.strictErrors) return error;
  const undeclared = `${contract.name} does not declare ${error.code}`;
  return unexpected(services, new Error(undeclared, { cause: error }), call);
}

function unexpected({ log }: Services, error: unknown, call: Call): Failure {
  const reference = call.reference();
  log.error({ err: error, request_id: reference, operation: call.name }, "internal error");
  return new Failure("internal", `internal error, reference ${reference}`);
}
