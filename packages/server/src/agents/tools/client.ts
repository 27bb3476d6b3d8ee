/** Everything that uses the MCP client. `load-client.ts` loads it. */
export { toolAuthorization } from "./authorization.ts";
export { httpConnection } from "./connection.ts";
export {
  callError,
  contactError,
  isConnectionForgotten,
  isRequestRejected,
  isTimeout,
} from "./contact-error.ts";
export { serverAuth } from "./server-auth.ts";
export { stdioConnection } from "./stdio-connection.ts";
