import { groupOf, type Person, say } from "@parley/testkit/client.ts";
import {
  type Client,
  type ClientOptions,
  createClient,
  isCallError,
  type PieceName,
} from "../../src/index.ts";

const TIMEOUT_MS = 60_000;

export type TestClient = Client & Disposable;

/** A client that reconnects quickly and is closed at the end of its test. */
export function clientOf(
  person: Pick<Person, "token">,
  url: string,
  options: ClientOptions = {},
): TestClient {
  const client = createClient({
    url,
    token: person.token,
    reconnectMs: { min: 2, max: 20 },
    ...options,
  });
  return Object.assign(client, { [Symbol.dispose]: () => client.close() });
}

/** A client that is connected and up to date. */
export async function connected(
  person: Pick<Person, "token">,
  url: string,
  options: ClientOptions = {},
): Promise<TestClient> {
  const client = clientOf(person, url, options);
  await client.connect();
  return client;
}

/** Waits until `find` returns something truthy. It is called again when one of the pieces changes. */
export function until<Value>(
  client: Client,
  names: PieceName | PieceName[],
  find: () => Value | null | undefined | false,
  what = `${names}`,
): Promise<Value> {
  const watched = [names].flat();
  return new Promise((resolve, reject) => {
    const stops: (() => void)[] = [];
    const done = () => {
      clearTimeout(timer);
      for (const stop of stops) stop();
    };
    const check = () => {
      const value = find();
      if (!value) return;
      done();
      resolve(value);
    };
    const timer = setTimeout(() => {
      done();
      const seen = watched.map((name) => client.model.get(name));
      reject(new Error(`timed out waiting for ${what}: ${JSON.stringify(seen).slice(0, 2000)}`));
    }, TIMEOUT_MS);
    stops.push(...watched.map((name) => client.model.watch(name, check)));
    check();
  });
}

export const online = (client: Client) =>
  until(client, "status", () => client.status === "online", "the connection");

/** Waits until every message of the conversation is sent. */
export const delivered = (client: Client, chatId: string) =>
  until(client, `messages:${chatId}`, () =>
    client.model.get(`messages:${chatId}`).items.every(({ delivery }) => delivery === "sent"),
  );

export const contents = (client: Client, chatId: string): string[] =>
  client.model.get(`messages:${chatId}`).items.map(({ content }) => content);

/** A storage in memory, which several clients can use one after another. */
export function memoryStorage() {
  const items = new Map<string, string>();
  return {
    items,
    getItem: (key: string) => items.get(key) ?? null,
    setItem: (key: string, value: string) => void items.set(key, value),
    removeItem: (key: string) => void items.delete(key),
  };
}

/** A group of two people with one message of the other, opened by a client of the first. */
export async function openedGroup(person: Person, other: Person, url: string) {
  const { id: chat } = await groupOf(person, other);
  const message = await say(other, { id: chat }, "hello");
  const client = await connected(person, url);
  await client.model.openChat(chat);
  const reads = () => client.model.get(`chat:${chat}`)?.reads[person.username];
  await until(client, `chat:${chat}`, () => reads() !== undefined);
  return { chat, message, client, [Symbol.dispose]: () => client.close() };
}

/** The error code with which a call fails. */
export async function codeOf(call: Promise<unknown>): Promise<string | undefined> {
  const error = await call.catch((thrown: unknown) => thrown);
  return isCallError(error) ? error.code : undefined;
}

/** A storage of files in memory, which several clients can use one after another. */
export function memoryBlobs() {
  const items = new Map<string, Blob>();
  return {
    items,
    get: async (key: string) => items.get(key),
    set: async (key: string, blob: Blob) => void items.set(key, blob),
    delete: async (key: string) => void items.delete(key),
  };
}
