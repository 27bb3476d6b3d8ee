import { randomBytes } from "node:crypto";
import type { Logger } from "../../observe/log.ts";
import { conflict, notFound, suspended } from "../../rules/failure.ts";
import { isSameSecret } from "../../security/tokens.ts";
import type { Vault } from "../../security/vault.ts";
import type { AccountRecord } from "../../store/accounts.ts";
import type { Store } from "../../store/store.ts";
import { createLease } from "../../upkeep/jobs.ts";
import type { Blobs } from "../blobs.ts";
import { accountData } from "./account-data.ts";
import { zip } from "./zip.ts";

/** Long enough to click on a link, too short to find one in a history or a log. */
const LINK_MS = 10 * 60_000;

export type Exports = ReturnType<typeof createExports>;

export interface ExportsOptions {
  readonly store: Pick<Store, "read" | "write">;
  /** Null if the server takes no files. */
  readonly blobs: Pick<Blobs, "open"> | null;
  readonly vault: Pick<Vault, "fingerprint">;
  readonly log: Logger;
}

/** Downloads of people's own data. Nothing is stored: an archive is made while it is sent. */
export function createExports({ store, blobs, vault, log }: ExportsOptions) {
  const sign = ({ id }: AccountRecord, expires: string, sessionId: string, nonce: string) =>
    vault.fingerprint(`export link ${id} ${expires} ${sessionId} ${nonce}`);

  async function accountOf(token: string): Promise<AccountRecord> {
    const [username = "", expires = "", sessionId = "", nonce = "", signature = ""] =
      token.split(".");
    const account = await store.read((tx) => tx.account(username));
    const isSigned = account && isSameSecret(sign(account, expires, sessionId, nonce), signature);
    if (!isSigned || Number(expires) < Date.now()) throw wrongLink();
    checkActive(account);
    const hasEnded = sessionId !== "" && (await store.read((tx) => tx.hasSessionEnded(sessionId)));
    if (hasEnded) throw wrongLink();
    return account;
  }

  return {
    /** A link that works until it expires or the session ends. Without a session: until it expires. */
    link(account: AccountRecord, sessionId = "") {
      const expires_at = Date.now() + LINK_MS;
      const nonce = randomBytes(16).toString("base64url");
      const signature = sign(account, `${expires_at}`, sessionId, nonce);
      const token = [account.username, expires_at, sessionId, nonce, signature].join(".");
      return { path: `/exports/${token}`, expires_at };
    },
    /**
     * Begins the download of a link. Throws `not_found` if the link is wrong or has expired, its session
     * has ended or its account is deleted, `suspended` if the account is, and `conflict` while another
     * download of the same person runs on any node.
     */
    async open(token: string) {
      const account = await accountOf(token);
      const name = `export ${account.id}`;
      const id = Bun.randomUUIDv7();
      const running = createLease(store, name, id);
      if (!(await running.claim())) throw conflict("another download of your data is running");
      const data = accountData({
        store,
        blobs,
        account,
        check: async (tx) => checkActive(await tx.account(account.username)),
        progress: () => running.renew(),
      });
      const body = streamOf(zip(data, new Date()), {
        failed: (err) => log.warn({ err, account: account.username }, "account export failed"),
        ended: () => store.write((tx) => tx.deleteSubscription(name, id)),
      });
      const day = new Date().toISOString().slice(0, 10);
      return { filename: `parley-${account.username}-${day}.zip`, body };
    },
  };
}

function checkActive(account: AccountRecord | null): void {
  if (!account || account.erased_at !== null) throw wrongLink();
  if (account.suspended_at !== null) throw suspended();
}

const wrongLink = () => notFound("this link is wrong or has expired, ask for a new one");

/** A stream that reads on only when its consumer does. `ended` is called once, however it ends. */
function streamOf(
  source: AsyncGenerator<Uint8Array<ArrayBuffer>>,
  { failed, ended }: { failed(error: unknown): void; ended(): Promise<unknown> },
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const end = () => ended().catch(failed);
  let isGone = false;
  return new ReadableStream(
    {
      async pull(controller) {
        try {
          const { value, done } = await source.next();
          if (isGone) return;
          if (!done) return controller.enqueue(value);
          await end();
          controller.close();
        } catch (error) {
          failed(error);
          await end();
          controller.error(error);
        }
      },
      async cancel() {
        isGone = true;
        await source.return(undefined);
        await end();
      },
    },
    { highWaterMark: 1 },
  );
}
