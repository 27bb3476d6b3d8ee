import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import Provider from "oidc-provider";

/** A real OpenID Connect issuer, with pages on which people sign in and consent. */
export interface RealIssuer extends AsyncDisposable {
  readonly url: string;
  /** Lets a client sign people in, and send their browsers back to these addresses. */
  register(clientId: string, redirectUris: string[]): void;
  /** Refuses all requests, or serves them again. */
  setDown(isDown: boolean): void;
}

export async function startIssuer(): Promise<RealIssuer> {
  let provider: Provider | null = null;
  let isDown = false;
  const server = createServer((request, response) => {
    if (isDown || !provider) response.writeHead(503).end();
    else void provider.callback()(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    register(clientId, redirectUris) {
      provider = new Provider(url, {
        clients: [
          {
            client_id: clientId,
            redirect_uris: redirectUris,
            token_endpoint_auth_method: "none",
          },
        ],
        claims: { openid: ["sub"], profile: ["name", "preferred_username"] },
        // The name that is typed on the sign-in page becomes the subject.
        findAccount: (_, id) => ({
          accountId: id,
          claims: () => ({ sub: id, preferred_username: id, name: `${id} of the issuer` }),
        }),
      });
    },
    setDown: (value) => {
      isDown = value;
    },
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
