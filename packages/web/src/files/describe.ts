import type { Account, File, Message } from "@parley/protocol";
import { plainText } from "@parley/protocol/markup";
import { count, isMyAgent } from "../lib/names.ts";

export type FileKind = "picture" | "video" | "audio" | "other";

/** The types that browsers show as pictures; the server serves no others inline. */
const PICTURE = /^image\/(?:jpeg|png|webp|gif|bmp)$/;

export function kindOf({ type }: Pick<File, "type">): FileKind {
  if (PICTURE.test(type)) return "picture";
  if (type.startsWith("video/")) return "video";
  return type.startsWith("audio/") ? "audio" : "other";
}

/** Pictures by type that the server takes. SVG is a file like any other to it. */
const ACCEPTED = /^image\/(?:jpeg|a?png|webp|gif|bmp|svg\+xml)$/;
/** Browsers that do not know a format give it no type. */
const REFUSED_NAME = /\.(?:heic|heif|hif|avif|tiff?|psd)$/i;

/** Whether the server refuses a file because it is a picture that it cannot process, such as HEIC. */
export function isRefusedPicture({ name, type }: Pick<File, "name" | "type">): boolean {
  return type.startsWith("image/") ? !ACCEPTED.test(type) : REFUSED_NAME.test(name);
}

const marks: Record<FileKind, string> = { picture: "📷", video: "🎬", audio: "🎵", other: "📎" };

/** What «the owner of this agent» reads in place of the sentence for everybody. */
const NO_KEY = "It has no API key yet.";

type Line = Pick<Message, "content" | "files"> & Partial<Pick<Message, "sender" | "turn">>;

/** A message in a line: its words, or its files if it has none. `me` is addressed if it is about one's own agent. */
export function messageLine({ content, files, sender, turn }: Line, most: number, me?: Account) {
  const isOwner = sender && me && isMyAgent(sender, me);
  if (isOwner && turn?.error?.code === "key_missing") return NO_KEY;
  return plainText(content, most) || describeFiles(files);
}

function describeFiles(files: readonly File[]): string {
  const [first] = files;
  if (!first) return "";
  return files.length === 1 ? `${marks[kindOf(first)]} ${first.name}` : count(files.length, "file");
}

/** Names up to this length are shown in full nearly everywhere. */
const SHORT_NAME = 20;

/** A long name in two parts: what may be cut, and the extension with a few characters before it. */
export function splitName(name: string): { start: string; end: string } {
  const [end = ""] =
    name.length > SHORT_NAME ? (/.{0,4}\.[\p{L}\p{N}]{1,5}$/u.exec(name) ?? []) : [];
  return { start: name.slice(0, name.length - end.length), end };
}

/** The end of a name as the label of a tile: «PDF»; empty if there is none. */
export function extensionOf(name: string): string {
  const [, extension = ""] = /\.([\p{L}\p{N}]{1,5})$/u.exec(name) ?? [];
  return extension.toUpperCase();
}
