import { operations, type SignedIn } from "@parley/protocol";
import { publicAccount } from "../account.ts";
import { badField, Failure, forbidden, notFound, unauthorized } from "../failure.ts";
import { bind, type Context } from "../operation.ts";
import { makePerson, UsernameTaken } from "../security/authenticate.ts";
import { passwordWeakness } from "../security/common-passwords.ts";
import { hashToken, newToken, SESSION_MS } from "../security/tokens.ts";
import { endSession, replacePassword } from "../sessions.ts";
import type { AccountRecord, WriteTx } from "../store/store.ts";

const signUp = bind(operations.signUp, async (context, input) => {
  const { config, passwords, store, origin } = context;
  checkPolicy(config.signUp, input.invite_code);
  checkStrength("password", input.password, input.username);
  if (await store.read((tx) => tx.account(input.username))) throw taken();
  const password_hash = await passwords.hash(input.password);
  const { username, display_name = username } = input;
  try {
    return await store.write(async (tx) => {
      const person = { username, display_name, password_hash };
      const account = await makePerson(tx, person, config.providers);
      return openSession(tx, account, origin);
    });
  } catch (error) {
    throw error instanceof UsernameTaken ? taken() : error;
  }
});

const signIn = bind(operations.signIn, async (context, { username, password }) => {
  const { signInFailures, passwords, store, origin } = context;
  signInFailures.byUsername.attempt(username);
  signInFailures.byAddress.attempt(origin.network);
  const found = await store.read((tx) => tx.credentials(username));
  if (!(await passwords.verify(password, found?.password_hash ?? null)) || !found) {
    throw unauthorized("the username or the password is wrong");
  }
  signInFailures.byUsername.forget(username);
  signInFailures.byAddress.forgive(origin.network);
  return store.write((tx) => openSession(tx, found.account, origin));
});

const changePassword = bind(operations.changePassword, async (context, input) => {
  const { signInFailures, passwords, store, caller } = context;
  const { account, session_id } = caller;
  checkStrength("new_password", input.new_password, account.username);
  signInFailures.byUsername.attempt(account.username);
  const known = await store.read((tx) => tx.credentials(account.username));
  if (!(await passwords.verify(input.current_password, known?.password_hash ?? null))) {
    throw forbidden("the current password is wrong");
  }
  signInFailures.byUsername.forget(account.username);
  const hash = await passwords.hash(input.new_password);
  await store.write((tx) => replacePassword(tx, account, hash, session_id));
});

const signOut = bind(operations.signOut, async ({ store, caller }) => {
  await store.write((tx) => endSession(tx, caller.session_id, caller.account));
});

const getSessions = bind(operations.getSessions, async ({ store, caller }) => {
  const sessions = await store.read((tx) => tx.sessions(caller.account.id, Date.now()));
  return { items: sessions.map((each) => ({ ...each, current: each.id === caller.session_id })) };
});

const revokeSession = bind(operations.revokeSession, async ({ store, caller }, { session_id }) => {
  await store.write(async (tx) => {
    if (!(await endSession(tx, session_id, caller.account))) throw notFound("session");
  });
});

export const session = [signUp, signIn, changePassword, signOut, getSessions, revokeSession];

const taken = () => new Failure("conflict", "conflict: the username is taken");

function checkStrength(field: string, password: string, username: string): void {
  const weakness = passwordWeakness(password, username);
  if (weakness) throw badField(field, weakness);
}

function checkPolicy(policy: Context["config"]["signUp"], inviteCode: string | undefined): void {
  if (policy.kind === "closed") throw forbidden("sign-up is closed");
  if (policy.kind === "invite" && !policy.codes.includes(inviteCode ?? "")) {
    throw forbidden("sign-up needs a valid invite_code");
  }
}

async function openSession(
  tx: WriteTx,
  account: AccountRecord,
  { user_agent }: Context["origin"],
): Promise<SignedIn> {
  const access_token = newToken();
  const at = Date.now();
  await tx.insertSession({
    id: Bun.randomUUIDv7(),
    token_hash: hashToken(access_token),
    account_id: account.id,
    user_agent,
    at,
    expires_at: at + SESSION_MS,
  });
  const expires_at = new Date(at + SESSION_MS).toISOString();
  return { access_token, expires_at, account: publicAccount(account) };
}
