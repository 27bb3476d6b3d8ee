import { useClient } from "@parley/client/react";
import type { ToolServer } from "@parley/protocol";
import { useCallback, useEffect, useState } from "react";

export interface ToolServers {
  /** Null until they are fetched. */
  servers: readonly ToolServer[] | null;
  problem: unknown;
  load: () => Promise<void>;
  /** Shows a server as an operation returned it. */
  put: (server: ToolServer) => void;
}

/** One's own tool servers, and those that the operator offers to everybody. */
export function useToolServers(): ToolServers {
  const client = useClient();
  const [servers, setServers] = useState<readonly ToolServer[] | null>(null);
  const [problem, setProblem] = useState<unknown>(null);
  const load = useCallback(async () => {
    try {
      setServers((await client.getToolServers()).items);
      setProblem(null);
    } catch (error) {
      setProblem(error);
    }
  }, [client]);
  useEffect(() => {
    void load();
  }, [load]);
  const put = useCallback((server: ToolServer) => {
    setServers((known) => {
      const all = known ?? [];
      return all.some(({ id }) => id === server.id)
        ? all.map((each) => (each.id === server.id ? server : each))
        : [...all, server];
    });
  }, []);
  return { servers, problem, load, put };
}
