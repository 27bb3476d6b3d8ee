/** Servers of several nodes, by the address they are known under; calls go to each in turn. */
const nodes = new Map<string, string[]>();

export function spreadOver(url: string, urls: readonly string[]): void {
  nodes.set(url, [...urls]);
}

export const nodesOf = (url: string): readonly string[] => nodes.get(url) ?? [url];

/** Where the next call to this server goes. */
export function nextNode(url: string): string {
  const urls = nodes.get(url);
  const next = urls?.shift();
  if (!urls || next === undefined) return url;
  urls.push(next);
  return next;
}

const PASSWORD = "correct horse battery";
const watchers = new Map<string, Promise<string>>();

/**
 * Resolves when whatever other nodes had told this one before has arrived there. What a node tells
 * arrives in order, so something is said last: on each of the others a session is ended whose socket
 * is here, and the socket closes.
 */
export async function heardFromOthers(url: string, node: string): Promise<void> {
  const others = nodesOf(url).filter((other) => other !== node);
  await Promise.all(others.map((other) => sayLast(url, node, other)));
}

async function sayLast(url: string, node: string, other: string): Promise<void> {
  if (!watchers.has(url)) watchers.set(url, watcher(node));
  const username = (await watchers.get(url)) as string;
  const { access_token } = await call(node, "signIn", { username, password: PASSWORD });
  const socket = new WebSocket(`${node.replace(/^http/, "ws")}/api/ws?token=${access_token}`);
  const closed = new Promise((resolve) => socket.addEventListener("close", resolve));
  await new Promise((resolve) => socket.addEventListener("message", resolve, { once: true }));
  await call(other, "signOut", {}, access_token);
  await closed;
}

async function watcher(node: string): Promise<string> {
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
