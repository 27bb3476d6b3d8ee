import { finishChatErasure, finishErasure } from "../domain/erasures.ts";
import type { ErasureRecord } from "../store/erasures.ts";
import { createLease, type JobOptions, type Proceed, runRegularly } from "./jobs.ts";

/** How often to look for erasures that another process has begun or left unfinished. */
const CHECK_MS = 5000;

export type Erasures = ReturnType<typeof startErasures>;

/**
 * Finishes erasures of accounts and conversations, on one node at a time, also those that a crash of any
 * process has interrupted.
 */
export function startErasures({ store, node, log }: Omit<JobOptions, "metrics">) {
  const held = createLease(store, "erasures", node);

  /** Finishes all that can be finished. Those that fail are tried again at the next check. */
  async function finishAll(signal: AbortSignal): Promise<void> {
    const failed = new Set<number>();
    const findOpen = async () =>
      (await store.read((tx) => tx.openErasures())).filter(
        ({ account }) => !failed.has(account.id),
      );
    const findChats = () => store.read((tx) => tx.openChatErasures());
    if ((await findOpen()).length === 0 && (await findChats()).length === 0) return;
    await held.hold(signal, async (proceed) => {
      for (const chat of await findChats()) {
        await finishChatErasure(store, chat, proceed).catch((err) => {
          signal.throwIfAborted();
          log.error({ err, conversation: chat.uuid }, "conversation erasure failed");
        });
      }
      for (let open = await findOpen(); open.length > 0; open = await findOpen()) {
        for (const erasure of open) {
          await finish(erasure, proceed).catch((err) => {
            signal.throwIfAborted();
            log.error({ err, account: erasure.account.username }, "account erasure failed");
            failed.add(erasure.account.id);
          });
        }
      }
    });
  }

  async function finish(erasure: ErasureRecord, proceed: Proceed): Promise<void> {
    const { username } = erasure.account;
    let messages = 0;
    await proceed();
    await finishErasure(store, erasure, async (deleted) => {
      messages += deleted;
      await proceed();
    });
    log.info({ account: username, messages }, "account erasure finished");
  }

  const job = runRegularly(CHECK_MS, (signal) =>
    finishAll(signal).catch((err) => log.error({ err }, "account erasure failed")),
  );
  /** Call `wake` after a unit that has erased an account. */
  return { wake: job.run, stop: job.stop };
}
