import { useClient } from "@parley/client/react";
import type { Account } from "@parley/protocol";
import { useAction } from "../../lib/action.ts";
import { describeError } from "../../lib/errors.ts";
import { Button } from "../../ui/Button.tsx";
import { Notice } from "../../ui/Notice.tsx";

/** Stands in place of the composer in the direct conversation with somebody whom the person blocked. */
export function BlockedComposer({ account }: { account: Account }) {
  const client = useClient();
  const { busy, error, run } = useAction();
  const { username, display_name } = account;
  return (
    <div className="shrink-0 px-3 pb-[max(0.75rem,env(safe-area-inset-bottom))] md:px-4 md:pb-4">
      <div className="mx-auto flex max-w-200 flex-col gap-2">
        <div className="flex flex-wrap items-center justify-between gap-2 rounded-lg border border-line bg-sunken py-2 pr-2 pl-4">
          <p className="min-w-0 text-base break-words text-ink-2">You blocked {display_name}.</p>
          <Button
            size="small"
            busy={busy}
            onClick={() => run(() => client.unblockUser({ username }))}
          >
            Unblock
          </Button>
        </div>
        {error !== null && <Notice>{describeError(error)}</Notice>}
      </div>
    </div>
  );
}
