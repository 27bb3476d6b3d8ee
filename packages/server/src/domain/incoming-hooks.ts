import { threadCpuMs } from "../observe/cpu-time.ts";
import { COST_PER_MS, fanOutCost } from "../rules/costs.ts";
import { notFound } from "../rules/failure.ts";
import type { ServerPolicy } from "../rules/policies.ts";
import { slackContent } from "../rules/slack.ts";
import { hashToken } from "../rules/tokens.ts";
import type { Throttle } from "../security/throttle.ts";
import { isSameSecret } from "../security/tokens.ts";
import type { ReadTx, Store } from "../store/store.ts";
import { postMessage } from "./messages.ts";
import { checkAllowed } from "./policies.ts";

/** A request to the address of an incoming hook. */
export interface HookRequest {
  readonly id: string;
  readonly secret: string;
  /** The network of the client. */
  readonly network: string;
  /** Read only once the secret is checked. */
  body(): Promise<string>;
}

export type IncomingHooks = ReturnType<typeof createIncomingHooks>;

export interface IncomingHooksOptions {
  readonly store: Pick<Store, "read" | "write">;
  readonly config: { readonly policy: ServerPolicy };
  /** Limits the posts of a hook. */
  readonly posts: Throttle;
  /** What the posts of all hooks of one creator cost together. */
  readonly costs: Throttle;
  /** Limits all requests of a network, also those that no hook accepts. */
  readonly requests: Throttle;
}

/** Rendering the markup of a payload takes far longer than parsing JSON, and with some markup longer still. */
const POST_COST = 5;
const BYTES_PER_COST = 256;

export function createIncomingHooks(options: IncomingHooksOptions) {
  const { store, config, posts, costs, requests } = options;

  /** Where a hook posts, and as whom. */
  async function placeOf(tx: ReadTx, id: string) {
    const hook = await tx.incomingHook(id);
    const creator = hook && (await tx.account(hook.creator));
    const conversation = creator && (await tx.conversation(hook.chat, creator.id));
    const sender = hook && (await tx.account(hook.account));
    const isActive = conversation?.joined && creator?.suspended_at === null;
    if (!sender || !conversation || !isActive) throw notFound("hook");
    await checkAllowed(tx, config, creator, "hooks");
    return { conversation, sender };
  }

  return {
    /**
     * Posts the payload of a Slack webhook. Throws `not_found` when there is no such hook, its secret is
     * another one, or its creator does not take part in the group any more, and `forbidden` when the
     * policy of its creator forbids hooks.
     */
    async post({ id, secret, network, body }: HookRequest): Promise<void> {
      requests.take(network);
      const hook = await store.read((tx) => tx.incomingHook(id.toLowerCase()));
      if (!hook || !isSameSecret(hashToken(secret), hook.secret_hash)) throw notFound("hook");
      posts.take(hook.id);
      const payer = `hooks of ${hook.creator}`;
      costs.take(payer, POST_COST);
      const payload = await body();
      costs.charge(payer, Buffer.byteLength(payload) / BYTES_PER_COST);
      const before = threadCpuMs();
      const content = slackContent(payload);
      costs.charge(payer, (threadCpuMs() - before) * COST_PER_MS);
      const { participant_count } = await store.write(async (tx) => {
        const place = await placeOf(tx, hook.id);
        await postMessage(tx, { ...place, content });
        return place.conversation;
      });
      costs.charge(payer, fanOutCost(participant_count));
    },
  };
}
