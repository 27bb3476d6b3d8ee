import { expect, test } from "bun:test";
import type { File } from "@parley/protocol";
import { createContextFiles, type TurnFiles } from "../src/agents/context-files/index.ts";
import { runBuiltIn } from "../src/agents/tools/built-in.ts";
import type { Blobs } from "../src/files/blobs.ts";
import { createLogger } from "../src/observe/log.ts";
import type { Store } from "../src/store/store.ts";

const FILE_ID = "01a1ec51-9acd-759f-8da2-8303cfe47e60";

/** One file in one message of a conversation, and an agent that may read it. */
function conversationWith(file: Pick<File, "type" | "size">, maxHeldBytes?: number) {
  const opened: string[] = [];
  const records = [{ id: FILE_ID, blob: "blob", conversation_uuid: "here", message_uuid: "m" }];
  const messages = [{ files: [{ ...file, id: FILE_ID, name: "file", width: null, height: null }] }];
  const tx = { files: async () => records, messageViews: async () => messages };
  const read = (work: (unit: typeof tx) => unknown) => work(tx);
  const store = { read } as unknown as Store;
  const open = async (name: string) => {
    opened.push(name);
    const content = new Blob(["x".repeat(file.size)]);
    return { size: file.size, stream: async () => content.stream() };
  };
  const loader = createContextFiles({
    store,
    blobs: { open } as unknown as Blobs,
    log: createLogger("silent"),
    timeoutMs: 2000,
    ...(maxHeldBytes !== undefined && { maxHeldBytes }),
  });
  const provider = {
    display_name: "Model",
    protocol: "anthropic",
    base_url: "http://127.0.0.1:1",
    model: "model",
    context_tokens: 100_000,
    max_output_tokens: 4096,
    tools: true,
  } as const;
  const turn = { conversation_id: 1, conversation_uuid: "here" };
  const services = { store, config: { limits: { image_pixels: 1e6 } } };
  return {
    opened,
    newTurn: () => loader.open(new AbortController().signal),
    readFile: (files: TurnFiles) =>
      runBuiltIn({ ...services, turn, owner_id: 1, provider, files }, "read_file", {
        file_id: FILE_ID,
      }),
  };
}

test("the memory of a file that an agent reads is held until its turn ends", async () => {
  const { newTurn, readFile } = conversationWith({ type: "text/plain", size: 8 }, 10);
  using first = newTurn();
  expect(await readFile(first)).toMatchObject({ is_error: false });
  using second = newTurn();
  expect(await readFile(second)).toMatchObject({ is_error: true });
  first[Symbol.dispose]();
  expect(await readFile(second)).toMatchObject({ is_error: false });
});

test("a file that the turn has loaded is not loaded again when the agent reads it", async () => {
  const { newTurn, readFile, opened } = conversationWith({ type: "text/plain", size: 8 }, 10);
  using turn = newTurn();
  expect(await readFile(turn)).toEqual(await readFile(turn));
  expect(opened).toHaveLength(1);
});

test.each([
  ["a document", { type: "application/pdf", size: (12 << 20) + 1 }, "too large"],
  ["a picture", { type: "image/png", size: (32 << 20) + 1 }, "too large"],
  ["a file of another type", { type: "application/zip", size: 8 }, "cannot see its content"],
])("%s that no model can see is not opened when an agent reads it", async (_, file, why) => {
  const { newTurn, readFile, opened } = conversationWith(file);
  using turn = newTurn();
  const { text, is_error } = await readFile(turn);
  expect(is_error).toBe(true);
  expect(text).toContain(why);
  expect(opened).toEqual([]);
});
