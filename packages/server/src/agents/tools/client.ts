/** Everything that uses the MCP client. `load-client.ts` loads it. */
export { createToolAuthorization } from "./authorization.ts";
export { connectByHttp, connectByStdio } from "./connection.ts";
export { callError, contactError, httpStatusOf } from "./contact-error.ts";
export { createServerAuth } from "./server-auth.ts";
