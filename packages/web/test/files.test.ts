import { describe, expect, test } from "bun:test";
import type { LocalMessage } from "@parley/client";
import type { File } from "@parley/protocol";
import { extensionOf, kindOf, messageLine, splitName } from "../src/files/describe.ts";
import { filesHeight, gridBox } from "../src/files/layout.ts";
import { describeRefusal } from "../src/lib/describe-failure.ts";
import { formatSize } from "../src/lib/format-size.ts";

const file = (name: string, type: string, width: number | null = null, height = width): File => ({
  id: name,
  name,
  type,
  size: 1,
  width,
  height,
  duration_ms: null,
  status: "ready",
  placeholder: null,
});
const photo = file("photo.png", "image/png", 100);

describe("a message in a line", () => {
  test("is its words, if it has any", () => {
    expect(messageLine({ content: "**Look**", files: [photo] }, 90)).toBe("Look");
  });

  test("names its only file, with a mark of its kind", () => {
    const line = (only: File) => messageLine({ content: "", files: [only] }, 90);
    expect(line(photo)).toBe("📷 photo.png");
    expect(line(file("a.mp4", "video/mp4"))).toBe("🎬 a.mp4");
    expect(line(file("a.mp3", "audio/mpeg"))).toBe("🎵 a.mp3");
    expect(line(file("a.pdf", "application/pdf"))).toBe("📎 a.pdf");
  });

  test("counts several files", () => {
    expect(messageLine({ content: "", files: [photo, photo, photo] }, 90)).toBe("3 files");
  });
});

test("SVG is not shown as a picture", () => {
  expect(kindOf({ type: "image/svg+xml" })).toBe("other");
});

test("sizes are rounded for people", () => {
  const sizes = [0, 1, 999, 1000, 4_400_000, 26_214_400];
  expect(sizes.map(formatSize)).toEqual([
    "0 bytes",
    "1 byte",
    "999 bytes",
    "1 KB",
    "4.2 MB",
    "25 MB",
  ]);
});

test("why a message or a file of it was refused is put into words for people", () => {
  const reason = "in the words of the server";
  const refusals: [LocalMessage["refusal"], shown: string][] = [
    [
      { code: "payload_too_large", reason, maxBytes: 26_214_400, file: "a.bin" },
      "a.bin: a file has at most 25 MB",
    ],
    [{ code: "unsupported_media_type", reason, file: "a.heic" }, `a.heic: ${reason}`],
    [
      {
        code: "rate_limited",
        reason,
        maxBytes: 1_073_741_824,
        retryAfter: 41_000,
        file: "a.png",
      },
      "a.png: more than 1 GB of uploads a day, try again in 12 hours",
    ],
    [{ code: "forbidden", reason }, reason],
    [{ code: "not_found", reason: "conversation" }, "the conversation was not found"],
    [
      { code: "not_found", reason: "users ada, bob", names: ["ada", "bob"] },
      "there is no user ada, bob",
    ],
    [{ code: "not_found", reason, names: ["ada:gpt"] }, "there is no agent ada:gpt"],
    [{ code: "not_found", reason, fields: { "file_ids.1": "is gone" } }, "the file was not found"],
  ];
  for (const [refusal, shown] of refusals) {
    const message = { failure: "the whole sentence", refusal } as LocalMessage;
    expect(describeRefusal(message)).toBe(shown);
  }
  const lost = { failure: "a.png: the bytes are gone" } as LocalMessage;
  expect(describeRefusal(lost)).toBe("a.png: the bytes are gone");
});

test("the end of a name is its label", () => {
  const names = ["a.pdf", "README", "archive.tar.gz", "a.verylong", ".env"];
  expect(names.map(extensionOf)).toEqual(["PDF", "", "GZ", "", "ENV"]);
});

describe("the box of pictures", () => {
  const box = (width: number, height: number) => gridBox([{ width, height }]);

  test("has the shape of a single picture, within limits", () => {
    expect(box(200, 100)).toEqual({ width: 200, height: 100 });
    expect(box(3200, 1600)).toEqual({ width: 320, height: 160 });
    expect(box(1000, 2000)).toEqual({ width: 180, height: 360 });
    expect(box(1, 1)).toEqual({ width: 96, height: 96 });
    expect(box(10_000, 10)).toEqual({ width: 320, height: 96 });
    expect(box(1080, 9600)).toEqual({ width: 180, height: 360 });
    expect(box(9600, 1080)).toEqual({ width: 320, height: 120 });
  });

  test("does not depend on the shapes of several pictures", () => {
    expect(gridBox([photo, photo])).toEqual({ width: 320, height: 160 });
    expect(gridBox([photo, photo, photo, photo, photo])).toEqual({ width: 320, height: 320 });
  });

  test("is part of the estimated height of a message", () => {
    expect(filesHeight([])).toBe(0);
    expect(filesHeight([photo])).toBe(100);
    expect(filesHeight([photo, file("a.pdf", "application/pdf")])).toBe(162);
  });
});

test("a long name can be cut before its extension", () => {
  const parts = (name: string) => Object.values(splitName(name));
  expect(parts("report.pdf")).toEqual(["report.pdf", ""]);
  expect(parts("Minutes of the meeting, version 23.docx")).toEqual([
    "Minutes of the meeting, versio",
    "n 23.docx",
  ]);
  expect(parts("a name without any extension")).toEqual(["a name without any extension", ""]);
});
