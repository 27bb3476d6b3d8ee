/** Everything that the shop's backend does with Parley. */
import { createBackend } from "@parley/client";
import { Webhook } from "standardwebhooks";

export const PARLEY_URL = process.env.PARLEY_URL ?? "http://127.0.0.1:8080";
const key = process.env.PARLEY_SERVICE_KEY;
if (!key) throw new Error("PARLEY_SERVICE_KEY is not set");

/** Whoever has the key can act for everybody, so it never leaves the backend. */
const backend = createBackend({ url: PARLEY_URL, key });

/** A user as the shop knows them. */
export interface ShopUser {
  id: string;
  name: string;
}

/** Creates the accounts of users, or updates them. Returns their usernames in Parley. */
export async function upsertUsers(...users: ShopUser[]): Promise<string[]> {
  const { items } = await backend.upsertUsers({
    users: users.map(({ id, name }) => ({ external_id: id, display_name: name })),
  });
  return items.map(({ account }) => account.username);
}

/** A token for the page of a user, valid for one hour. */
export async function issueToken(user: ShopUser): Promise<string> {
  return (await backend.issueToken({ external_id: user.id })).access_token;
}

/** Ends all tokens of a user. */
export async function revokeTokens(user: ShopUser): Promise<void> {
  await backend.revokeTokens({ external_id: user.id });
}

export interface Order {
  id: string;
  title: string;
  buyer: ShopUser;
  seller: ShopUser;
}

/**
 * Starts the conversation about an order, unless there is one: of the buyer, the seller, and an
 * assistant, which answers messages that mention it.
 */
export async function startOrderChat({ id, title, buyer, seller }: Order): Promise<void> {
  const [buyerName = ""] = await upsertUsers(buyer, seller);
  // Every user has an agent of each provider in providers.json. The shop pays for their answers.
  const members = [`id:${buyer.id}`, `id:${seller.id}`, `${buyerName}:assistant`];
  await backend.upsertChats({ chats: [{ external_id: id, title, members }] });
}

/** Asks Parley to send new messages to an address of the shop. */
export async function createWebhook(url: string): Promise<Webhook> {
  // With a name, a further start of the shop gets the same webhook, with its secret.
  const events = ["events.messageNew"];
  const { secret } = await backend.createWebhook({ name: "shop", url, events });
  return new Webhook(secret);
}
