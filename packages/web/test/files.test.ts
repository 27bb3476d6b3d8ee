import { describe, expect, test } from "bun:test";
import type { File } from "@parley/protocol";
import { extensionOf, formatSize, kindOf, messageLine, splitName } from "../src/files/describe.ts";
import { filesHeight, gridBox } from "../src/files/layout.ts";
import { describeFailure } from "../src/lib/describe-failure.ts";

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

test("what the server says about a refused file is put into words for people", () => {
  const failures = [
    "a.bin: payload too large: a file has at most 26214400 bytes",
    "a.heic: unsupported media type: pictures of the type image/heic are not supported",
    "a.png: rate limited: more than 1073741824 bytes of uploads a day, try again in 41000 s",
    "forbidden: you are not part of this conversation",
    "conflict: the account was deleted",
    "not found: conversation",
    "a.png: not found: file 01993b6e-0000-7000-8000-000000000000",
  ];
  expect(failures.map(describeFailure)).toEqual([
    "a.bin: a file has at most 25 MB",
    "a.heic: pictures of the type image/heic are not supported",
    "a.png: more than 1 GB of uploads a day, try again in 12 hours",
    "you are not part of this conversation",
    "the account was deleted",
    "the conversation was not found",
    "a.png: the file was not found",
  ]);
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
