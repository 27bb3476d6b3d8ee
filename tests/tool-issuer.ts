import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { ToolServer } from "@parley/testkit/tool-server.ts";
import Provider from "oidc-provider";

/** A real authorization server for a tool server, with which clients register themselves. */
export interface ToolIssuer extends AsyncDisposable {
  readonly url: string;
  /** Signs a person in and agrees, as they would in their browser. Returns where it is sent back to. */
  agree(authorizationUrl: string): Promise<string>;
  accepts(token: string): Promise<boolean>;
  /** Ends all access tokens; refresh tokens stay valid. */
  expireTokens(): void;
  /** Ends everything that was granted. */
  revoke(): void;
}

/** A tool server that demands tokens of a real authorization server. */
export async function startProtectedServer() {
  const tools = new ToolServer();
  const issuer = await startToolIssuer(tools.url);
  const { origin } = new URL(tools.url);
  const metadata = "/.well-known/oauth-protected-resource/mcp";
  tools.documents.set(metadata, {
    resource: tools.url,
    authorization_servers: [issuer.url],
    scopes_supported: ["tools"],
  });
  tools.accepts = issuer.accepts;
  tools.challenge = `Bearer resource_metadata="${origin}${metadata}", scope="tools"`;
  return {
    tools,
    issuer,
    [Symbol.asyncDispose]: async () => {
      await tools[Symbol.asyncDispose]();
      await issuer[Symbol.asyncDispose]();
    },
  };
}

async function startToolIssuer(resource: string): Promise<ToolIssuer> {
  let handle: ReturnType<Provider["callback"]> | undefined;
  const server = createServer((request, response) => void handle?.(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const expired = new Set<string>();
  let isRevoked = false;
  const provider = new Provider(url, {
    features: {
      registration: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => resource,
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({ scope: "tools", accessTokenFormat: "opaque" }),
      },
    },
    scopes: ["openid", "offline_access", "tools"],
    issueRefreshToken: async () => true,
    rotateRefreshToken: true,
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  });
  handle = provider.callback();
  let issued = new Set<string>();
  provider.on("access_token.issued", ({ jti }) => issued.add(jti));
  provider.use(async (context, next) => {
    if (isRevoked && context.path === "/token") {
      context.status = 400;
      context.body = { error: "invalid_grant", error_description: `revoked: ${context.path}` };
      return;
    }
    await next();
  });
  return {
    url,
    agree: (authorizationUrl) => new Browser().agree(authorizationUrl),
    accepts: async (token) =>
      token !== "" &&
      !isRevoked &&
      !expired.has(token) &&
      (await provider.AccessToken.find(token)) !== undefined,
    expireTokens: () => {
      for (const token of issued) expired.add(token);
      issued = new Set();
    },
    revoke: () => {
      isRevoked = true;
    },
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Follows redirects with cookies, and submits the forms of the issuer. */
class Browser {
  private readonly cookies = new Map<string, string>();

  async agree(authorizationUrl: string): Promise<string> {
    const { origin } = new URL(authorizationUrl);
    let next = await this.follow(authorizationUrl, origin);
    for (let steps = 0; steps < 5 && next.page !== null; steps++) {
      const action = /<form[^>]* action="([^"]+)"/.exec(next.page)?.[1] ?? "";
      const prompt = /name="prompt" value="(\w+)"/.exec(next.page)?.[1] ?? "";
      const body = new URLSearchParams({ prompt, login: "ada", password: "any" });
      next = await this.follow(new URL(action, origin).href, origin, body);
    }
    return next.url;
  }

  private async follow(start: string, origin: string, form?: URLSearchParams) {
    let url = start;
    let body = form;
    while (new URL(url).origin === origin) {
      const response = await this.fetch(url, body);
      const location = response.headers.get("location");
      if (!location) return { url, page: await response.text() };
      await response.body?.cancel();
      url = new URL(location, url).href;
      body = undefined;
    }
    return { url, page: null };
  }

  private async fetch(url: string, body: URLSearchParams | undefined): Promise<Response> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const response = await fetch(url, {
      redirect: "manual",
      headers: { cookie },
      ...(body && { method: "POST", body }),
    });
    for (const line of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      this.cookies.set(name, value);
    }
    return response;
  }
}
