import { afterAll, expect, test } from "bun:test";
import { failure, type Person, people } from "@parley/testkit/client.ts";
import { noRates, startServer } from "@parley/testkit/server.ts";
import { ToolServer, tool } from "@parley/testkit/tool-server.ts";
import { startProtectedServer } from "./tool-issuer.ts";

const server = await startServer({ ...noRates, PARLEY_PRIVATE_ADDRESSES: "allow" });
afterAll(() => server[Symbol.asyncDispose]());

/** A server of a new person, which demands tokens of a real authorization server. */
async function protectedServer() {
  const made = await startProtectedServer();
  const [person] = await people(server.url, "ada");
  const added = await person.call("addToolServer", { name: "protected", url: made.tools.url });
  expect(added).toMatchObject({ status: "unauthorized", tools: [] });
  const server_id = added.id;
  const authorize = async () => (await person.call("authorizeToolServer", { server_id })).url;
  const refresh = () => person.call("refreshToolServer", { server_id });
  return { ...made, person, server_id, authorize, refresh };
}

/** Ends an authorization with the answer in the address that the browser was sent back to. */
function finish(person: Person, callback: string) {
  const { state = "", code, iss } = Object.fromEntries(new URL(callback).searchParams);
  return person.call("finishToolServer", { state, ...(code && { code }), ...(iss && { iss }) });
}

const refused = async (person: Person, callback: string) =>
  (await failure(finish(person, callback))).code;

const stateOf = (address: string) => new URL(address).searchParams.get("state") ?? "";

test("a person authorizes a tool server, once", async () => {
  await using made = await protectedServer();
  const address = await made.authorize();
  const { origin, searchParams } = new URL(address);
  expect(origin).toBe(made.issuer.url);
  expect(searchParams.get("code_challenge_method")).toBe("S256");
  expect(searchParams.get("resource")).toBe(made.tools.url);
  const callback = await made.issuer.agree(address);
  expect(callback).toStartWith(`${server.url}/oauth/tool-servers/callback?`);
  const ready = { status: "ready", error: null, tools: [{ name: "echo" }] };
  expect(await finish(made.person, callback)).toMatchObject({ id: made.server_id, ...ready });
  expect((await made.person.call("getToolServers")).items).toMatchObject([ready]);
  // The answer works once, and the server stays authorized.
  expect(await refused(made.person, callback)).toBe("conflict");
  expect(await made.refresh()).toMatchObject({ status: "ready" });
});

test("the page that browsers are sent back to ends nothing by itself, and tells nobody the code", async () => {
  await using made = await protectedServer();
  const callback = await made.issuer.agree(await made.authorize());
  const { status, headers } = await fetch(callback, { headers: { accept: "text/html" } });
  expect(status).toBe(200);
  expect(headers.get("referrer-policy")).toBe("no-referrer");
  const { items } = await made.person.call("getToolServers");
  expect(items).toMatchObject([{ status: "unauthorized" }]);
  expect(await finish(made.person, callback)).toMatchObject({ status: "ready" });
});

test("nobody ends the authorization of another person, who can still end it", async () => {
  await using made = await protectedServer();
  const [tricked] = await people(server.url, "bob");
  const callback = await made.issuer.agree(await made.authorize());
  expect(await refused(tricked, callback)).toBe("forbidden");
  const refusal = new URL(callback);
  refusal.searchParams.delete("code");
  expect(await refused(tricked, refusal.href)).toBe("forbidden");
  expect((await tricked.call("getToolServers")).items).toEqual([]);
  expect((await made.person.call("getToolServers")).items).toMatchObject([
    { status: "unauthorized" },
  ]);
  expect(await finish(made.person, callback)).toMatchObject({ status: "ready" });
});

test("tokens that expired are refreshed, and revoked ones make the server unauthorized", async () => {
  await using made = await protectedServer();
  await finish(made.person, await made.issuer.agree(await made.authorize()));
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

test("an answer with a wrong state, with a wrong code or of an earlier attempt changes nothing", async () => {
  await using made = await protectedServer();
  const first = await made.issuer.agree(await made.authorize());
  const callback = new URL(await made.issuer.agree(await made.authorize()));
  expect(await refused(made.person, first)).toBe("conflict");
  const right = stateOf(callback.href);
  const { server_id } = made;
  for (const state of ["x", server_id, `${server_id}.guess`, `${crypto.randomUUID()}.x`]) {
    callback.searchParams.set("state", state);
    expect(await refused(made.person, callback.href)).toBe("conflict");
  }
  callback.searchParams.set("state", right);
  callback.searchParams.set("code", "wrong");
  expect(await refused(made.person, callback.href)).toBe("conflict");
  const { items } = await made.person.call("getToolServers");
  expect(items).toMatchObject([{ status: "unauthorized" }]);
});

test("a refusal of the authorization server ends the authorization, and leaves the server as it is", async () => {
  await using made = await protectedServer();
  const address = await made.authorize();
  const denied = `${server.url}/?error=access_denied&state=${stateOf(address)}`;
  expect(await finish(made.person, denied)).toMatchObject({ status: "unauthorized" });
  expect(await refused(made.person, await made.issuer.agree(address))).toBe("conflict");
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
  for (const name of ["authorization_endpoint", "token_endpoint", "registration_endpoint"]) {
    describe({ registration_endpoint: `${origin}/register`, [name]: "http://auth.example.com/" });
    const refusal = await failure(person.call("authorizeToolServer", { server_id: id }));
    expect(refusal.message).toContain("the authorization server has no https address");
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
