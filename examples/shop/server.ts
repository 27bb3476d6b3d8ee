/** A shop with users and a sign-in of its own. They chat in its page, through Parley. */
import type { EventFrame } from "@parley/client";
import {
  createWebhook,
  issueToken,
  type Order,
  PARLEY_URL,
  revokeTokens,
  type ShopUser,
  startOrderChat,
  upsertUsers,
} from "./chat.ts";
import page from "./page.html";

interface User extends ShopUser {
  email: string;
  passwordHash: string;
}

const PORT = Number(process.env.PORT ?? 3000);
const hash = (password: string) => Bun.password.hash(password);

// A real product keeps all of this in its database.
const ada: User = {
  id: "user-1",
  name: "Ada",
  email: "ada@example.com",
  passwordHash: await hash("ada's password"),
};
const grace: User = {
  id: "user-2",
  name: "Grace",
  email: "grace@example.com",
  passwordHash: await hash("grace's password"),
};
const users = new Map([ada, grace].map((user) => [user.email, user]));
const sessions = new Map<string, User>();
const order: Order = { id: "order-1001", title: "Order 1001", buyer: ada, seller: grace };
const deliveries = new Set<string>();

const webhook = await createWebhook(`http://127.0.0.1:${PORT}/webhook`);

Bun.serve({
  hostname: "127.0.0.1",
  port: PORT,
  routes: {
    "/": page,
    "/sign-in": { POST: signIn },
    "/sign-out": { POST: signOut },
    "/me": (request) => Response.json({ name: userOf(request)?.name, parleyUrl: PARLEY_URL }),
    "/chat-token": { POST: forUsers(async (user) => ({ token: await issueToken(user) })) },
    "/ask": { POST: forUsers(askSeller) },
    "/webhook": { POST: receiveWebhook },
  },
});
console.log(`Open http://127.0.0.1:${PORT}`);

async function signIn(request: Bun.BunRequest): Promise<Response> {
  const { email, password } = await request.json();
  const user = users.get(email);
  if (!user || !(await Bun.password.verify(password, user.passwordHash))) {
    return Response.json({ problem: "Wrong address or password." }, { status: 401 });
  }
  await upsertUsers(user);
  const session = crypto.randomUUID();
  sessions.set(session, user);
  request.cookies.set("session", session, { httpOnly: true, sameSite: "lax" });
  return Response.json({});
}

async function signOut(request: Bun.BunRequest): Promise<Response> {
  const user = userOf(request);
  sessions.delete(request.cookies.get("session") ?? "");
  if (user) await revokeTokens(user);
  return Response.json({});
}

async function askSeller() {
  await startOrderChat(order);
  return {};
}

/** Learns what was written. Each event comes at least once, and has the same id every time. */
async function receiveWebhook(request: Request): Promise<Response> {
  const headers = Object.fromEntries(request.headers);
  let event: { data: EventFrame<"events.messageNew"> };
  try {
    event = webhook.verify(await request.text(), headers) as typeof event;
  } catch {
    return new Response("invalid signature", { status: 401 });
  }
  const id = headers["webhook-id"] ?? "";
  if (!deliveries.has(id)) {
    deliveries.add(id);
    const { sender, content } = event.data.params;
    console.log(`Webhook: ${sender.display_name} wrote: ${content}`);
  }
  return new Response("ok");
}

const userOf = ({ cookies }: Bun.BunRequest) => sessions.get(cookies.get("session") ?? "");

/** Answers signed-in users with JSON, and everybody else with 401. */
function forUsers(answer: (user: User) => Promise<object>) {
  return async (request: Bun.BunRequest) => {
    const user = userOf(request);
    if (!user) return Response.json({ problem: "Sign in first." }, { status: 401 });
    return Response.json(await answer(user));
  };
}
