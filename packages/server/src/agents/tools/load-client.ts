/** The MCP client takes a quarter of the time that all else takes to load: the server starts without it. */
export const loadClient = () => import("./client.ts");
