import { randomBytes } from "node:crypto";
import { badField, forbidden, suspended, unauthorized } from "../rules/failure.ts";
import { hashToken } from "../rules/tokens.ts";
import type { AccountRecord } from "../store/accounts.ts";
import type { Store } from "../store/store.ts";
import type { AuditLog } from "./audit-log.ts";
import type { DelegateCaller, Origin, ServiceCaller, ServiceKey } from "./caller.ts";
import { isStale } from "./tokens.ts";

const PREFIX = "pls_";

/** A service key of 256 random bits. The store has only its hash. */
export const newServiceKey = () => `${PREFIX}${randomBytes(32).toString("base64url")}`;

export const isServiceKey = (token: string | null): token is string =>
  token?.startsWith(PREFIX) ?? false;

/** The names that keys may have. */
export const KEY_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** The name of the key that PARLEY_SERVICE_KEY_FILE gives, in the audit log. No other can have it. */
const CONFIGURED: ServiceKey = { name: "(PARLEY_SERVICE_KEY_FILE)" };

/** The header that names the person whom a service key acts for. */
export const ACTS_FOR = "x-parley-as";

/** What a request with a service key says of its caller. */
export interface ServiceCredentials {
  readonly key: string;
  /** The value of `x-parley-as`: a username, or `id:` and an external id. */
  readonly actsFor: string | null;
  /** Whether it has an `Origin` header, as requests of browsers do. */
  readonly isFromBrowser: boolean;
}

export type ServiceKeys = ReturnType<typeof createServiceKeys>;

export interface ServiceKeysOptions {
  readonly store: Store;
  /** The hash of the key that PARLEY_SERVICE_KEY_FILE gives. */
  readonly configuredHash: string | null;
  readonly audit: AuditLog;
}

export const createServiceKeys = ({ store, configuredHash, audit }: ServiceKeysOptions) => ({
  /** Throws `unauthorized`, `forbidden`, or `bad_request` when nobody is named as `x-parley-as` says. */
  async authenticate(
    { key: given, actsFor, isFromBrowser }: ServiceCredentials,
    origin: Origin,
  ): Promise<ServiceCaller | DelegateCaller> {
    if (isFromBrowser) {
      audit.recordOnce("service_key_refused", `browser ${origin.network}`, { origin });
      throw forbidden("a service key must not be used in a browser");
    }
    const hash = hashToken(given);
    const key = hash === configuredHash ? CONFIGURED : await storedKey(store, hash);
    if (!key) {
      audit.recordOnce("service_key_refused", origin.network, { origin });
      throw unauthorized("the service key is unknown or revoked");
    }
    if (actsFor === null) return { kind: "service", key };
    return { kind: "delegate", key, account: await personNamed(store, actsFor) };
  },
});

async function storedKey(store: Store, hash: string): Promise<ServiceKey | null> {
  const found = await store.read((tx) => tx.serviceKey(hash));
  if (!found) return null;
  const { name, last_used_at } = found;
  const now = Date.now();
  if (isStale(last_used_at, now)) await store.write((tx) => tx.touchServiceKey(name, now));
  return { name };
}

async function personNamed(store: Store, name: string): Promise<AccountRecord> {
  const account = await store.read((tx) =>
    name.startsWith("id:")
      ? tx.accountByExternalId(name.slice("id:".length))
      : tx.account(name.toLowerCase()),
  );
  if (account?.kind === "human" && account.erased_at === null) {
    if (account.suspended_at !== null) throw suspended();
    return account;
  }
  throw badField(ACTS_FOR, "names nobody");
}
