import { expect, test } from "bun:test";
import type { File } from "@parley/protocol";
import { ObjectUrls } from "../src/files/object-urls.ts";
import { createSelect } from "../src/model/select.ts";
import { aMessage, anEvent, annsState, CHAT, run } from "./support/records.ts";

const file: File = {
  id: "f1",
  name: "dot.png",
  type: "image/png",
  size: 70,
  width: 1,
  height: 1,
  duration_ms: null,
  status: "ready",
  placeholder: null,
};

test("a window changes only if one of its messages gets an object URL", () => {
  const select = createSelect();
  const withFile = aMessage({ seq: 3, files: [file] });
  const state = run(annsState(2), anEvent("events.messageNew", withFile, 3));
  const shown = (localUrls: Record<string, string>) => {
    const piece = select({ ...state, localUrls }, `messages:${CHAT}`);
    return piece as { items: readonly { files: readonly object[] }[] };
  };
  const before = shown({});
  expect(shown({ other: "blob:other" })).toBe(before);
  const after = shown({ f1: "blob:1" });
  expect(after.items[2]?.files).toEqual([{ ...file, url: "blob:1" }]);
  expect(after.items[0]).toBe(before.items[0] as (typeof before.items)[0]);
  expect(shown({ f1: "blob:1", other: "blob:other" })).toBe(after);
  expect(shown({})).toEqual(before);
});

test("object URLs are made of what a browser shows without scripts, and old ones are revoked", async () => {
  const revoked: string[] = [];
  const urls = new ObjectUrls((ids) => revoked.push(...ids));
  const blob = (type: string) => new Blob(["bytes"], { type });
  for (const type of ["text/html", "image/svg+xml", "application/pdf", ""]) {
    expect(urls.create(blob(type))).toBeUndefined();
  }
  const keep = (fileId: string, size: number) => {
    const url = urls.create(blob("image/png")) ?? "";
    urls.keep({ fileId, url, size });
    return url;
  };
  const first = keep("first", 60 * 1024 * 1024);
  expect(await (await fetch(first)).text()).toBe("bytes");
  const second = keep("second", 60 * 1024 * 1024);
  expect(revoked).toEqual(["first"]);
  await expect(fetch(first)).rejects.toThrow();
  urls.revokeOthers([second]);
  expect(await (await fetch(second)).text()).toBe("bytes");
  urls.clear();
  expect(revoked).toEqual(["first", "second"]);
});
