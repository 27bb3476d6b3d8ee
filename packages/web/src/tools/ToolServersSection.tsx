import { useState } from "react";
import { Button } from "../ui/Button.tsx";
import { Unfetched } from "../ui/Unfetched.tsx";
import { AddServer } from "./AddServer.tsx";
import { ServerItem } from "./ServerItem.tsx";
import { useToolServers } from "./servers.ts";

/** The tool servers of the person: what agents can be allowed to use. */
export function ToolServersSection() {
  const servers = useToolServers();
  const [isAdding, setAdding] = useState(false);
  return (
    <div className="flex flex-col gap-4">
      <p className="text-base text-ink-2">
        MCP servers with tools for your agents. No agent may use a tool until you allow it, on the
        page «My agents».
      </p>
      {servers.value === null && <Unfetched fetched={servers} className="h-16" />}
      {servers.value && servers.value.length > 0 && (
        <ul className="flex flex-col divide-y divide-line">
          {servers.value.map((server) => (
            <ServerItem
              key={server.id}
              server={server}
              onChange={servers.put}
              onRemoved={servers.fetchAgain}
            />
          ))}
        </ul>
      )}
      <Button size="small" icon="plus" className="self-start" onClick={() => setAdding(true)}>
        Add a tool server
      </Button>
      {isAdding && (
        <AddServer
          onAdded={(server) => {
            servers.put(server);
            setAdding(false);
          }}
          onClose={() => setAdding(false)}
        />
      )}
    </div>
  );
}
