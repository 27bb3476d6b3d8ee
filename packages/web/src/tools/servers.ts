import { useClient } from "@parley/client/react";
import type { ToolServer } from "@parley/protocol";
import { useCallback } from "react";
import { type Fetched, useFetched } from "../lib/fetched.ts";

export interface ToolServers extends Fetched<readonly ToolServer[]> {
  /** Shows a server as an operation returned it. */
  put: (server: ToolServer) => void;
}

/** One's own tool servers, and those that the operator offers to everybody. */
export function useToolServers(): ToolServers {
  const client = useClient();
  const fetched = useFetched(
    useCallback(
      async (): Promise<readonly ToolServer[]> => (await client.getToolServers()).items,
      [client],
    ),
  );
  const { value, change, fetchAgain } = fetched;
  const isFetched = value !== null;
  const put = useCallback(
    (server: ToolServer) => {
      if (isFetched) change((known) => withServer(known ?? [], server));
      else fetchAgain();
    },
    [isFetched, change, fetchAgain],
  );
  return { ...fetched, put };
}

const withServer = (servers: readonly ToolServer[], server: ToolServer) =>
  servers.some(({ id }) => id === server.id)
    ? servers.map((each) => (each.id === server.id ? server : each))
    : [...servers, server];
