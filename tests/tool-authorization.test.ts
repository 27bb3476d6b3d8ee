import { afterAll, expect, test } from "bun:test";
import { failure, people } from "@parley/testkit/client.ts";
import { noRates, startServer } from "@parley/testkit/server.ts";
import { ToolServer, tool } from "@parley/testkit/tool-server.ts";
import { startToolIssuer } from "./tool-issuer.ts";

const server = await startServer({ ...noRates, PARLEY_PRIVATE_ADDRESSES: "allow" });
afterAll(() => server[Symbol.asyncDispose]());

/** A tool server that demands tokens of a real authorization server, added by a new person. */
async function protectedServer() {
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
  const [person] = await people(server.url, "ada");
  const added = await person.call("addToolServer", { name: "protected", url: tools.url });
  expect(added).toMatchObject({ status: "unauthorized", tools: [] });
  const server_id = added.id;
  const authorize = async () => (await person.call("authorizeToolServer", { server_id })).url;
  const refresh = () => person.call("refreshToolServer", { server_id });
  return {
    tools,
    issuer,
    person,
    server_id,
    authorize,
    refresh,
    [Symbol.asyncDispose]: async () => {
      await tools[Symbol.asyncDispose]();
      await issuer[Symbol.asyncDispose]();
    },
  };
}

async function visit(address: string) {
  const response = await fetch(address);
  return { status: response.status, text: await response.text(), headers: response.headers };
}

test("a person authorizes a tool server in the browser, once", async () => {
  await using made = await protectedServer();
  const address = await made.authorize();
  const { origin, searchParams } = new URL(address);
  expect(origin).toBe(made.issuer.url);
  expect(searchParams.get("code_challenge_method")).toBe("S256");
  expect(searchParams.get("resource")).toBe(made.tools.url);
  const callback = await made.issuer.agree(address);
  expect(callback).toStartWith(`${server.url}/oauth/tool-servers/callback?`);
  const { status, text, headers } = await visit(callback);
  expect([status, text]).toEqual([200, expect.stringContaining("can be used now")]);
  expect(headers.get("cache-control")).toBe("no-store");
  expect(headers.get("referrer-policy")).toBe("no-referrer");
  const { items } = await made.person.call("getToolServers");
  expect(items).toMatchObject([{ status: "ready", error: null, tools: [{ name: "echo" }] }]);
  // The link works once, and the server stays authorized.
  expect((await visit(callback)).status).toBe(400);
  expect(await made.refresh()).toMatchObject({ status: "ready" });
});

test("tokens that expired are refreshed, and revoked ones make the server unauthorized", async () => {
  await using made = await protectedServer();
  await visit(await made.issuer.agree(await made.authorize()));
  made.issuer.expireTokens();
  made.tools.tools = [tool("other")];
  expect(await made.refresh()).toMatchObject({ status: "ready", tools: [{ name: "other" }] });
  made.issuer.revoke();
  expect(await made.refresh()).toMatchObject({
    status: "unauthorized",
    error: "The server demands authorization.",
    tools: [{ name: "other" }],
  });
});

test("an answer with a wrong state, without a code or of an earlier attempt changes nothing", async () => {
  await using made = await protectedServer();
  const first = await made.issuer.agree(await made.authorize());
  const second = await made.authorize();
  expect((await visit(first)).status).toBe(400);
  const callback = new URL(first);
  for (const state of [
    "",
    "x",
    made.server_id,
    `${made.server_id}.guess`,
    `${crypto.randomUUID()}.x`,
  ]) {
    callback.searchParams.set("state", state);
    expect((await visit(callback.href)).status).toBe(400);
  }
  const denied = new URL(callback);
  denied.search = "";
  denied.searchParams.set("error", "<script>access_denied");
  denied.searchParams.set("state", new URL(second).searchParams.get("state") ?? "");
  const page = await visit(denied.href);
  expect(page.status).toBe(400);
  expect(page.text).not.toContain("script");
  const { items } = await made.person.call("getToolServers");
  expect(items).toMatchObject([{ status: "unauthorized" }]);
});

test("servers that cannot be authorized are refused with a sentence", async () => {
  await using tools = new ToolServer();
  tools.accepts = () => false;
  const [person] = await people(server.url, "bob");
  const { id } = await person.call("addToolServer", { name: "x", url: tools.url });
  const authorize = async () =>
    (await failure(person.call("authorizeToolServer", { server_id: id }))).code;
  expect(await authorize()).toBe("conflict");
  const { origin } = new URL(tools.url);
  const describe = (metadata: object) =>
    tools.documents.set("/.well-known/oauth-authorization-server", {
      issuer: origin,
      authorization_endpoint: `${origin}/authorize`,
      token_endpoint: `${origin}/token`,
      response_types_supported: ["code"],
      code_challenge_methods_supported: ["S256"],
      ...metadata,
    });
  // It does not let clients register, has a dangerous address, does not use PKCE, or is somebody else.
  for (const metadata of [
    {},
    { authorization_endpoint: "javascript:alert(1)" },
    { code_challenge_methods_supported: ["plain"] },
    { issuer: "https://other.example.com" },
  ]) {
    describe(metadata);
    expect(await authorize()).toBe("conflict");
  }
  const [stranger] = await people(server.url, "eve");
  const theirs = stranger.call("authorizeToolServer", { server_id: id });
  expect((await failure(theirs)).code).toBe("not_found");
});

test("authorization servers find out who Parley is", async () => {
  const address = `${server.url}/oauth/tool-servers/client.json`;
  expect(await (await fetch(address)).json()).toMatchObject({
    client_id: address,
    redirect_uris: [`${server.url}/oauth/tool-servers/callback`],
    token_endpoint_auth_method: "none",
  });
});
