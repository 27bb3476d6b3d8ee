/** The nodes of each test server, by its address. Calls go to them in turn. */
const nodes = new Map<string, string[]>();

export function registerNodes(url: string, urls: readonly string[]): void {
  nodes.set(url, [...urls]);
}

export const nodesOf = (url: string): readonly string[] => nodes.get(url) ?? [url];

/** The node for the next call to this server. */
export function nextNode(url: string): string {
  const urls = nodes.get(url);
  const next = urls?.shift();
  if (!urls || next === undefined) return url;
  urls.push(next);
  return next;
}

const PASSWORD = "correct horse battery";
const markerUsers = new Map<string, Promise<string>>();

/**
 * Resolves when this node has received everything that the other nodes have published so far. A node
 * publishes in order, so a marker is published last: each other node ends a session whose socket is
 * at this node, and the socket closes.
 */
export async function waitForOtherNodes(url: string, node: string): Promise<void> {
  const others = nodesOf(url).filter((other) => other !== node);
  await Promise.all(others.map((other) => awaitMarker(url, node, other)));
}

async function awaitMarker(url: string, node: string, other: string): Promise<void> {
  if (!markerUsers.has(url)) markerUsers.set(url, signUpMarkerUser(node));
  const username = (await markerUsers.get(url)) as string;
  const { access_token } = await call(node, "signIn", { username, password: PASSWORD });
  const socket = new WebSocket(`${node.replace(/^http/, "ws")}/api/ws?token=${access_token}`);
  let isOpen = false;
  const closed = new Promise((resolve) => socket.addEventListener("close", resolve));
  const opened = new Promise<void>((resolve) =>
    socket.addEventListener("message", () => {
      isOpen = true;
      resolve();
    }),
  );
  await Promise.race([opened, closed]);
  await call(other, "signOut", {}, access_token);
  await closed;
  // A socket that was refused, because too many were open, shows nothing.
  if (!isOpen) await awaitMarker(url, node, other);
}

async function signUpMarkerUser(node: string): Promise<string> {
  const username = `w${Bun.randomUUIDv7().replaceAll("-", "").slice(-20)}`;
  await call(node, "signUp", { username, password: PASSWORD });
  return username;
}

async function call(node: string, operation: string, input: object, token?: string) {
  const response = await fetch(`${node}/api/${operation}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(token && { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify(input),
    keepalive: false,
  });
  const body = (await response.json()) as { ok: boolean; result: { access_token: string } };
  if (!body.ok) throw new Error(`${operation} failed: ${JSON.stringify(body)}`);
  return body.result;
}
