import { connect } from "node:net";
import type { Conversation } from "@parley/protocol";
import { type Person, RawSocket } from "@parley/testkit/client.ts";
import { put } from "@parley/testkit/files.ts";

/** What a stranger can send beside calls of operations. */
export interface Sending {
  /** Without the bytes of the answer. */
  readonly cost: number;
  readonly answer: RegExp;
  /** Returns a function that sends it and resolves to the answer. */
  prepare(): Promise<() => Promise<string>>;
}

type Expected = Pick<Sending, "cost" | "answer">;

/** A call of a tool, so often in one body to /mcp as it may have. */
export const tools = (name: string, args: object) =>
  JSON.stringify(
    Array.from({ length: 16 }, (_, id) => ({
      jsonrpc: "2.0",
      id,
      method: "tools/call",
      params: { name, arguments: args },
    })),
  );

/** What a person can send, in a conversation of theirs. */
export async function sendingsOf(person: Person, { id: chat_id }: Pick<Conversation, "id">) {
  const { url, token } = person;
  const socket = await RawSocket.connect(person);
  const unread: ReturnType<typeof connect>[] = [];
  let created = 0;
  // The socket receives events too.
  const replies = () => socket.texts.filter((text) => text.startsWith('{"ok":'));

  return {
    frame: (text: string): Sending => ({
      cost: 1 + Math.floor(text.length / 4096),
      answer: /"ok":false/,
      prepare: async () => async () => {
        const before = replies().length;
        socket.send(text);
        await socket.until(() => replies().length > before, "the reply");
        return replies().at(-1) ?? "";
      },
    }),

    toHook(text: string): Sending {
      const body = JSON.stringify({ text });
      return {
        cost: 5 + Math.floor(body.length / 256),
        answer: /^ok$/,
        // Each hook has a rate.
        async prepare() {
          const name = `spam-${++created}`;
          const made = await person.call("createIncomingHook", { chat_id, name });
          return async () => (await fetch(made.url, { method: "POST", body })).text();
        },
      };
    },

    toMcp: (body: string, expected: Expected): Sending => ({
      ...expected,
      prepare: async () => async () => {
        const headers = {
          authorization: `Bearer ${token}`,
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
        };
        return (await fetch(`${url}/mcp`, { method: "POST", headers, body })).text();
      },
    }),

    picture: (bytes: Uint8Array<ArrayBuffer>, expected: Expected): Sending => ({
      ...expected,
      async prepare() {
        const announced = { chat_id, name: `${++created}.png`, size: bytes.length };
        const { upload_url } = await person.call("createUpload", announced);
        return async () => JSON.stringify((await put(upload_url, bytes)).body);
      },
    }),

    /** A call whose answer is a page, of which only the beginning is read. */
    unread: (operation: string, input: object): Sending => ({
      cost: 5 + 1_048_576 / 16_384,
      answer: /^HTTP\/1.1 200/,
      prepare: async () => async () => {
        const { hostname, port, host } = new URL(url);
        const body = JSON.stringify(input);
        const tcp = connect(Number(port), hostname);
        unread.push(tcp);
        const { promise, resolve } = Promise.withResolvers<string>();
        tcp.once("data", (data) => {
          tcp.pause();
          resolve(`${data}`);
        });
        tcp.write(
          `POST /api/${operation} HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
        );
        return promise;
      },
    }),

    async [Symbol.asyncDispose]() {
      for (const each of unread) each.destroy();
      await socket[Symbol.asyncDispose]();
    },
  };
}
