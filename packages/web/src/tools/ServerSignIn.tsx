import { useClient } from "@parley/client/react";
import type { ToolServer } from "@parley/protocol";
import { type ReactNode, useEffect, useState } from "react";
import { useAction } from "../lib/action.ts";
import { describeError } from "../lib/errors.ts";
import { Button } from "../ui/Button.tsx";
import { Notice } from "../ui/Notice.tsx";

/** How often to ask whether the person has signed in, in the other window. */
const CHECK_MS = 2000;

interface ServerSignInProps {
  server: ToolServer;
  onChange: (server: ToolServer) => void;
  /** What else can be done. */
  children: ReactNode;
}

/** Signs in to a tool server by OAuth, in a new window, and notices when that is done. */
export function ServerSignIn({ server: { id, name }, onChange, children }: ServerSignInProps) {
  const client = useClient();
  const { busy, error, run } = useAction();
  const [isWaiting, setWaiting] = useState(false);
  useEffect(() => {
    if (!isWaiting) return;
    const check = async () => {
      const { items } = await client.getToolServers();
      const now = items.find((server) => server.id === id);
      if (now && now.status !== "unauthorized") onChange(now);
    };
    // A check that fails is followed by the next one.
    const timer = setInterval(() => void check().catch(() => {}), CHECK_MS);
    return () => clearInterval(timer);
  }, [client, id, isWaiting, onChange]);
  const start = () => {
    // Browsers open windows only for a press, so it is opened before the server has answered.
    const page = window.open("about:blank");
    if (page) page.opener = null;
    void run(async () => {
      try {
        const { url } = await client.authorizeToolServer({ server_id: id });
        if (page) page.location.replace(url);
        else location.assign(url);
        setWaiting(true);
      } catch (refusal) {
        page?.close();
        throw refusal;
      }
    });
  };
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-2">
      <Button size="small" look="primary" icon="key" busy={busy} onClick={start}>
        Sign in to {name}
      </Button>
      {children}
      <p className="basis-full text-sm text-ink-3">
        Sign in if the server has its own sign-in. Otherwise it needs a token that it accepts.
      </p>
      <p role="status" className="text-sm text-ink-3 empty:hidden">
        {isWaiting && "Go on in the other window. This page notices when you are done."}
      </p>
      {error !== null && <Notice>{describeError(error)}</Notice>}
    </div>
  );
}
