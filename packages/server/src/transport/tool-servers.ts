import { CALLBACK_PATH, CLIENT_PATH, clientMetadata } from "../agents/tools/authorization.ts";
import type { Services } from "../operation.ts";
import type { Page } from "./http.ts";
import { originOf } from "./origin.ts";

const POLICY = "default-src 'none'; style-src 'unsafe-inline'";

/** The pages that the authorization of tool servers needs: where browsers return to, and who Parley is. */
export const toolServerPages = ({ config, toolServers }: Services): [string, Page][] => [
  [
    CALLBACK_PATH,
    async (request) => {
      const { searchParams } = new URL(request.url);
      const isReady = await toolServers.finishAuthorization({
        state: (searchParams.get("state") ?? "").slice(0, 256),
        code: searchParams.get("code"),
        iss: searchParams.get("iss"),
      });
      return isReady ? outcome("Authorized", DONE) : outcome("Not authorized", FAILED, 400);
    },
  ],
  [
    CLIENT_PATH,
    (request) => {
      const base = originOf(request, "", config.proxies).base ?? "";
      return Response.json({ client_id: `${base}${CLIENT_PATH}`, ...clientMetadata(base) });
    },
  ],
];

const DONE = "The tool server can be used now. You can close this page.";
const FAILED =
  "The tool server was not authorized: it was refused, the link was used before, or more than ten minutes have passed. Begin again in Parley.";

const outcome = (title: string, text: string, status = 200) =>
  new Response(
    `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title}</title><body style="font:1rem/1.5 system-ui;margin:3rem auto;max-width:32rem;padding:0 1rem"><h1>${title}</h1><p>${text}</p></body></html>`,
    {
      status,
      headers: {
        "content-type": "text/html; charset=utf-8",
        "content-security-policy": POLICY,
        // The address has the code.
        "referrer-policy": "no-referrer",
        "cache-control": "no-store",
      },
    },
  );
