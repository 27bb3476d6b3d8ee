import type { Person } from "@parley/testkit/client.ts";
import { type Client, type ClientOptions, createClient, type PieceName } from "../../src/index.ts";

const PATIENCE_MS = 60_000;

export type TestClient = Client & Disposable;

/** A client that comes back quickly and ends with its test. */
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

/** The same, once it is up to date. */
export async function connected(
  person: Pick<Person, "token">,
  url: string,
  options: ClientOptions = {},
): Promise<TestClient> {
  const client = clientOf(person, url, options);
  await client.connect();
  return client;
}

/** Waits until what is found in the model is so. */
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
      reject(new Error(`waited in vain for ${what}: ${JSON.stringify(seen).slice(0, 2000)}`));
    }, PATIENCE_MS);
    stops.push(...watched.map((name) => client.model.watch(name, check)));
    check();
  });
}

export const online = (client: Client) =>
  until(client, "status", () => client.status === "online", "the connection");

/** Every message of ours has an answer. */
export const delivered = (client: Client, chatId: string) =>
  until(client, `messages:${chatId}`, () =>
    client.model.get(`messages:${chatId}`).items.every(({ delivery }) => delivery === "sent"),
  );

export const contents = (client: Client, chatId: string): string[] =>
  client.model.get(`messages:${chatId}`).items.map(({ content }) => content);

/** A storage as a browser has one, which outlives clients. */
export function memoryStorage() {
  const items = new Map<string, string>();
  return {
    items,
    getItem: (key: string) => items.get(key) ?? null,
    setItem: (key: string, value: string) => void items.set(key, value),
    removeItem: (key: string) => void items.delete(key),
  };
}
