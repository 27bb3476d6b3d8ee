import { afterAll, afterEach, expect, setSystemTime, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createOidcAccounts } from "../src/domain/oidc-accounts.ts";
import { createLogger } from "../src/observe/log.ts";
import { hashToken } from "../src/rules/tokens.ts";
import { createAuditLog } from "../src/security/audit-log.ts";
import { createAuthenticator } from "../src/security/authenticate.ts";
import type { OidcTokens } from "../src/security/oidc.ts";
import { openSqliteStore } from "../src/store/sqlite/index.ts";
import { sweep } from "../src/transport/socket.ts";
import { newAccount } from "./support/store-contract/fixture.ts";

const HOUR_MS = 60 * 60 * 1000;
const folder = mkdtempSync(join(tmpdir(), "parley-session-use-"));
const store = openSqliteStore(join(folder, "parley.db"));
afterAll(async () => {
  await store.close();
  rmSync(folder, { recursive: true });
});
afterEach(() => void setSystemTime());

const log = createLogger("silent");
const audit = createAuditLog(log, store);
const origin = { address: "192.0.2.1", network: "192.0.2.1", user_agent: null };
const limits = { session_days: 90 };
const issuedToken = "header.payload.signature";
const end = Date.now() + 48 * HOUR_MS;
const oidcTokens: OidcTokens = {
  recognises: (token) => token === issuedToken,
  verify: async () => ({
    identity: {
      issuer: "https://id.example.com",
      subject: "1",
      requestedName: "ada",
      display_name: null,
    },
    expires_at: end,
  }),
};
const service = createAuthenticator({
  ...{ store, oidcTokens, audit },
  oidcAccounts: createOidcAccounts({ audit, providers: new Map(), operators: [] }),
  limits,
});

/** A session, as it is stored. */
async function stored(token: string) {
  const session = await store.read((tx) => tx.session(hashToken(token)));
  if (!session) throw new Error("the session is missing");
  const { last_used_at, expires_at } = session;
  return { last_used_at, expires_at };
}

test("a token of an issuer updates when its session was last used, not when it ends", async () => {
  await service.authenticate(issuedToken, origin);
  const later = Date.now() + HOUR_MS;
  setSystemTime(later);
  await service.authenticate(issuedToken, origin);
  expect(await stored(issuedToken)).toEqual({ last_used_at: later, expires_at: end });
});

test("an open socket updates once an hour when its session or token was last used", async () => {
  const account = await store.write((tx) => newAccount(tx, { username: "grace" }));
  const at = Date.now();
  const open = async (token: string, fixed: boolean) => {
    const session = {
      id: Bun.randomUUIDv7(),
      token_hash: hashToken(token),
      account_id: account.id,
    };
    await store.write((tx) =>
      tx.insertSession({ ...session, user_agent: null, at, expires_at: end, fixed }),
    );
    return {
      kind: "session" as const,
      session_id: session.id,
      expires_at: end,
      renewed_at: at,
      renewable_since: fixed ? null : at,
      close() {},
    };
  };
  const openAgent = async (token: string) => {
    const made = { id: Bun.randomUUIDv7(), token_hash: hashToken(token), account_id: account.id };
    await store.write((tx) => tx.insertAgentToken({ ...made, name: "laptop", at }));
    const expires_at = Number.POSITIVE_INFINITY;
    const socket = { session_id: made.id, expires_at, renewed_at: at, renewable_since: null };
    return { kind: "agent" as const, ...socket, close() {} };
  };
  const sockets = [
    await open("fixed", true),
    await open("renewable", false),
    await openAgent("of an agent"),
  ];
  const renewals: Promise<void>[] = [];
  const authenticator = {
    ...service,
    renew(...renewal: Parameters<typeof service.renew>) {
      const renewing = service.renew(...renewal);
      renewals.push(renewing);
      return renewing;
    },
  };
  const services = { authenticator, log, config: { limits } } as unknown as Parameters<
    typeof sweep
  >[1];
  const sweepAt = async (now: number) => {
    setSystemTime(now);
    sweep(sockets, services);
    await Promise.all(renewals);
  };
  await sweepAt(at + HOUR_MS);
  await sweepAt(at + 1.5 * HOUR_MS);
  expect(renewals).toHaveLength(3);
  expect(await stored("fixed")).toEqual({ last_used_at: at + HOUR_MS, expires_at: end });
  const renewed = await stored("renewable");
  expect(renewed.last_used_at).toBe(at + HOUR_MS);
  expect(renewed.expires_at).toBeGreaterThan(end);
  const agentToken = await store.read((tx) => tx.agentToken(hashToken("of an agent")));
  expect(agentToken?.last_used_at).toBe(at + HOUR_MS);
});
