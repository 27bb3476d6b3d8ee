import { useClient } from "@parley/client/react";
import { type ReactNode, useState } from "react";
import { useAction } from "../lib/action.ts";
import { describeError } from "../lib/errors.ts";
import { usePolicy } from "../lib/policy.ts";
import { Button } from "../ui/Button.tsx";
import { Notice } from "../ui/Notice.tsx";
import { DeleteAccount } from "./DeleteAccount.tsx";

/** What the service has of the person: to download it, and to delete it. */
export function OwnData({ hasPassword }: { hasPassword: boolean }) {
  const client = useClient();
  const { busy, error, run } = useAction();
  const [isDeleting, setDeleting] = useState(false);
  const { delete_account } = usePolicy();
  const download = () => run(async () => downloadFrom((await client.exportMe()).url));
  return (
    <div className="flex flex-col gap-4">
      <Row text="Everything Parley has of you, in one archive: conversations, messages, agents, sessions.">
        <Button size="small" icon="down" busy={busy} onClick={() => void download()}>
          Download my data
        </Button>
      </Row>
      {error !== null && <Notice>{describeError(error)}</Notice>}
      {delete_account && (
        <Row text="Deletes your account, your agents and their keys, for good.">
          <Button size="small" look="danger" icon="trash" onClick={() => setDeleting(true)}>
            Delete my account
          </Button>
        </Row>
      )}
      {isDeleting && <DeleteAccount hasPassword={hasPassword} onClose={() => setDeleting(false)} />}
    </div>
  );
}

function Row({ text, children }: { text: string; children: ReactNode }) {
  return (
    <div className="flex flex-wrap items-center justify-between gap-x-3 gap-y-2">
      <p className="min-w-0 flex-1 basis-56 text-base text-ink-2">{text}</p>
      {children}
    </div>
  );
}

/** Has the browser download a file, while the page stays. */
function downloadFrom(url: string): void {
  const link = document.createElement("a");
  link.href = url;
  link.download = "";
  link.click();
}
