import { useClient } from "@parley/client/react";
import type { ToolServer } from "@parley/protocol";
import { useState } from "react";
import { useAction } from "../lib/action.ts";
import { describeError } from "../lib/errors.ts";
import { count } from "../lib/names.ts";
import { Button } from "../ui/Button.tsx";
import { Confirm } from "../ui/Confirm.tsx";
import { Icon } from "../ui/Icon.tsx";
import { Notice } from "../ui/Notice.tsx";
import { ChangeServer } from "./ChangeServer.tsx";
import { toolTitle } from "./calls.ts";
import { Description } from "./Description.tsx";
import { ServerSignIn } from "./ServerSignIn.tsx";
import { ServerStatus } from "./ServerStatus.tsx";
import { visibleText } from "./visible-text.ts";

interface ServerItemProps {
  server: ToolServer;
  onChange: (server: ToolServer) => void;
  onRemoved: () => void;
}

/** A tool server: its state, its tools, and what can be done with it. */
export function ServerItem({ server, onChange, onRemoved }: ServerItemProps) {
  const client = useClient();
  const { busy, error, run } = useAction();
  const [isAsking, setAsking] = useState(false);
  const [isChanging, setChanging] = useState(false);
  const { id, name, url, status, operator } = server;
  const refresh = () =>
    run(async () => onChange(await client.refreshToolServer({ server_id: id })));
  const remove = () => {
    setAsking(false);
    void run(async () => {
      await client.removeToolServer({ server_id: id });
      await client.model.refreshAgents();
      onRemoved();
    });
  };
  return (
    <li aria-label={name} className="flex flex-col gap-2 py-4 first:pt-0 last:pb-0">
      <div className="flex flex-wrap items-start gap-x-3 gap-y-2">
        <div className="min-w-0 flex-1 basis-52">
          <p className="flex flex-wrap items-center gap-x-2 text-base font-medium">
            <span className="min-w-0 break-words">{visibleText(name)}</span>
            {operator && (
              <span className="rounded-xs bg-chip px-1.5 text-2xs font-medium text-ink-2">
                offered by this server
              </span>
            )}
          </p>
          {url && <p className="text-sm break-all text-ink-3">{visibleText(url)}</p>}
        </div>
        <div className="flex flex-wrap gap-2">
          <Button size="small" icon="retry" busy={busy} onClick={refresh}>
            Refresh
          </Button>
          {!operator && (
            <Button size="small" icon="edit" busy={busy} onClick={() => setChanging(true)}>
              Change
            </Button>
          )}
          {!operator && (
            <Button size="small" look="danger" busy={busy} onClick={() => setAsking(true)}>
              Remove
            </Button>
          )}
        </div>
      </div>
      <ServerStatus server={server} />
      {status === "unauthorized" && !operator && (
        <ServerSignIn server={server} onChange={onChange}>
          <Button size="small" icon="edit" busy={busy} onClick={() => setChanging(true)}>
            Change the token
          </Button>
        </ServerSignIn>
      )}
      {error !== null && <Notice>{describeError(error)}</Notice>}
      {server.tools.length > 0 && <ToolList server={server} />}
      {isChanging && (
        <ChangeServer
          server={server}
          onChanged={(changed) => {
            onChange(changed);
            setChanging(false);
          }}
          onClose={() => setChanging(false)}
        />
      )}
      {isAsking && (
        <Confirm
          title={`Remove ${name}?`}
          back="Keep"
          action="Remove server"
          onBack={() => setAsking(false)}
          onConfirm={remove}
        >
          Your agents lose all of its tools, and its token is deleted.
        </Confirm>
      )}
    </li>
  );
}

function ToolList({ server: { tools } }: { server: ToolServer }) {
  return (
    <details className="group/tools">
      <summary className="inline-flex min-h-7 items-center gap-1.5 rounded-sm text-sm text-ink-2 pointer-coarse:min-h-10">
        <span className="text-ink-3 transition-transform group-open/tools:rotate-90">
          <Icon name="next" size={14} />
        </span>
        {count(tools.length, "tool")}
      </summary>
      <ul className="mt-1 flex flex-col gap-2 pl-5">
        {tools.map((tool) => (
          <li key={tool.name} className="text-sm">
            <p className="font-medium break-words">{toolTitle(tool)}</p>
            {tool.description && <Description of={toolTitle(tool)} text={tool.description} />}
          </li>
        ))}
      </ul>
    </details>
  );
}
