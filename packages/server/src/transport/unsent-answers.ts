import type { Backlog, Reader } from "../realtime/backlog.ts";

/** Shorter answers fit into the buffers of the operating system, and are handed over at once. */
const WHOLE_BYTES = 65_536;
const CHUNK_BYTES = 65_536;

export type UnsentAnswers = ReturnType<typeof createUnsentAnswers>;

/**
 * Answers over HTTP that their clients have not read yet. They count in the same total as the unsent
 * bytes of sockets: Bun would hold any number of them.
 */
export function createUnsentAnswers(sent: Backlog["sent"]) {
  const readers = new Map<string, Reader & { readonly answers: Set<Answer> }>();

  /** The answers that one caller has not read. Each is far smaller than what a socket may have unsent. */
  function readerOf(key: string) {
    const answers = new Set<Answer>();
    const terminate = () => {
      for (const answer of [...answers]) answer.drop();
    };
    const reader = readers.get(key) ?? {
      answers,
      // Only the total of all clients applies: an answer is never larger than a page.
      buffered: () => 0,
      unsent: () => answers.values().reduce((sum, { left }) => sum + left.length, 0),
      closeSlow: terminate,
      terminate,
    };
    readers.set(key, reader);
    return reader;
  }

  function stream(key: string, bytes: Uint8Array): ReadableStream<Uint8Array> {
    const reader = readerOf(key);
    const answer: Answer = { left: bytes, drop: () => {} };
    reader.answers.add(answer);
    sent(bytes.length);
    const end = () => {
      reader.answers.delete(answer);
      if (reader.answers.size === 0 && readers.get(key) === reader) readers.delete(key);
    };
    return new ReadableStream(
      {
        start(controller) {
          answer.drop = () => {
            end();
            controller.error(new Error("the client reads too slowly"));
          };
        },
        // Bun asks for the next chunk once the connection has taken the last one.
        pull(controller) {
          controller.enqueue(answer.left.subarray(0, CHUNK_BYTES));
          answer.left = answer.left.subarray(CHUNK_BYTES);
          if (answer.left.length > 0) return;
          end();
          controller.close();
        },
        cancel: end,
      },
      { highWaterMark: 0 },
    );
  }

  return {
    /** The response with this JSON. The key is who asked: what one has not read is dropped together. */
    json(key: string, text: string, { headers, ...init }: ResponseInit = {}): Response {
      const isShort = text.length * 3 <= WHOLE_BYTES || Buffer.byteLength(text) <= WHOLE_BYTES;
      const response = new Response(isShort ? text : stream(key, Buffer.from(text)), {
        ...init,
        ...(headers && { headers }),
      });
      response.headers.set("content-type", "application/json;charset=utf-8");
      return response;
    },
    /** Who has not read all of their answers. */
    readers: (): Iterable<Reader> => readers.values(),
  };
}

interface Answer {
  left: Uint8Array;
  drop(): void;
}
