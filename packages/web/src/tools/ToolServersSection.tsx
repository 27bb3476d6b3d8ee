import { useState } from "react";
import { describeError } from "../lib/errors.ts";
import { Button } from "../ui/Button.tsx";
import { Notice } from "../ui/Notice.tsx";
import { Skeleton } from "../ui/Skeleton.tsx";
import { AddServer } from "./AddServer.tsx";
import { ServerItem } from "./ServerItem.tsx";
import { useToolServers } from "./servers.ts";

/** The tool servers of the person: what agents can be allowed to use. */
export function ToolServersSection() {
  const { servers, problem, load, put } = useToolServers();
  const [isAdding, setAdding] = useState(false);
  return (
    <div className="flex flex-col gap-4">
      <p className="text-base text-ink-2">
        MCP servers with tools for your agents. No agent may use a tool until you allow it, on the
        page «My agents».
      </p>
      {problem !== null && <Notice>{describeError(problem)}</Notice>}
      {servers === null && problem === null && <Skeleton className="h-16" />}
      {servers && servers.length > 0 && (
        <ul className="flex flex-col divide-y divide-line">
          {servers.map((server) => (
            <ServerItem key={server.id} server={server} onChange={put} onRemoved={load} />
          ))}
        </ul>
      )}
      <Button size="small" icon="plus" className="self-start" onClick={() => setAdding(true)}>
        Add a tool server
      </Button>
      {isAdding && (
        <AddServer
          onAdded={(server) => {
            put(server);
            setAdding(false);
          }}
          onClose={() => setAdding(false)}
        />
      )}
    </div>
  );
}
