import type { OutputOf } from "@parley/protocol";
import type { ExternalTurns } from "../agents/external/index.ts";
import type { KeyTester, ModelLists } from "../agents/keys.ts";
import type { ToolRequests } from "../agents/tools/offered.ts";
import type { ToolServers } from "../agents/tools/servers.ts";
import type { Changes } from "../changes/stream.ts";
import type { Config } from "../config/config.ts";
import type { Exports } from "../files/exports/exports.ts";
import type { Files } from "../files/service.ts";
import type { Logger } from "../observe/log.ts";
import type { Webhooks } from "../outbound/webhooks.ts";
import type { AuditLog } from "../security/audit-log.ts";
import type { Caller, Origin } from "../security/caller.ts";
import type { OidcAccounts } from "../security/oidc.ts";
import type { OidcSignIn } from "../security/oidc-sign-in.ts";
import type { Passwords } from "../security/passwords.ts";
import type { SignInThrottle } from "../security/sign-in-throttle.ts";
import type { Vault } from "../security/vault.ts";
import type { Store } from "../store/store.ts";
import type { Erasures } from "../upkeep/erasures.ts";
import type { Throttles } from "./throttles.ts";

/** Who is online, and at the screen. Calls that name no open socket change nothing. */
export interface Presence {
  /** What the person is told of these people. Replaces what the socket watches by them. */
  watch(
    username: string,
    usernames: readonly string[],
    socketId: string | undefined,
  ): Promise<OutputOf<"watchPresence">>;
  /** Whether the person is at the screen of the client with this socket. */
  setActivity(username: string, active: boolean, socketId: string | undefined): void;
}

/** What operations may need. Each file of operations names its part of it. */
export interface Needs {
  readonly config: Config;
  readonly store: Store;
  readonly changes: Pick<Changes, "signal">;
  readonly presence: Presence;
  readonly passwords: Passwords;
  readonly oidcAccounts: OidcAccounts;
  /** Null: no issuer is configured for sign-in in a browser. */
  readonly oidcSignIn: OidcSignIn | null;
  readonly vault: Vault;
  readonly webhooks: Webhooks;
  readonly exports: Exports;
  /** Null: the server takes no files. */
  readonly files: Files | null;
  readonly erasures: Erasures;
  readonly externalTurns: ExternalTurns;
  readonly toolRequests: ToolRequests;
  readonly keyTester: KeyTester;
  readonly modelLists: ModelLists;
  readonly toolServers: ToolServers;
  readonly signInThrottle: SignInThrottle;
  /** Those that the contract declares, for what handlers decide by the input. */
  readonly throttles: Throttles;
  readonly log: Logger;
  readonly audit: AuditLog;
}

/** What a handler gets: what its file of operations needs, and the call. */
export type Context<Names extends keyof Needs = never, Who = Caller> = Pick<Needs, Names> & {
  readonly caller: Who;
  readonly origin: Origin;
  /** Aborted when the client is gone: nobody reads the answer then. */
  readonly signal: () => AbortSignal;
  /** Charges the caller for work that the cost of the operation does not include. */
  readonly charge: (cost: number) => void;
  /** Names the existing account that a call before sign-in is about, for the audit log. */
  readonly about: (username: string) => void;
};
