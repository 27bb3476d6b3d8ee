/**
 * Loads what contacts tool servers. The MCP client takes a quarter of the time that the rest of the
 * server takes to load, so the server starts without it.
 */
export const loadClient = () => import("./client.ts");
