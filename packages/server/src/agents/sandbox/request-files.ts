import { decodeInTurn } from "../../files/decoding.ts";
import { estimateDocumentTokens, estimateImageTokens } from "../../rules/token-estimate.ts";
import { coloursOf } from "./picture-colours.ts";

/** A file of a request, as the sandbox describes it. */
export interface SandboxFile {
  /** A phrase such as «a picture of 640 × 480 pixels, mostly red and white». May have markup. */
  description: string;
  /** Estimated. */
  tokens: number;
}

/** A content part of either protocol. */
export interface Part {
  type: string;
  text?: string;
  /** Anthropic's images and documents. */
  source?: { type: string; data: string };
  title?: string;
  /** OpenAI's images and files, as data URLs. */
  image_url?: { url: string };
  file?: { filename: string; file_data: string };
  /** Anthropic's tool calls and their results. */
  id?: string;
  name?: string;
  input?: unknown;
  tool_use_id?: string;
  content?: string | Part[];
  is_error?: boolean;
}

/** How the adapter for OpenAI's protocol inlines a text file. */
const INLINED = /^File ("(?:[^"\\]|\\.)*") \([^\n]*\):\n {2}(.*)$/s;

export const isFile = ({ type, text = "" }: Part) => type !== "text" || INLINED.test(text);

/** Describes a file. Null for parts that are no files, such as tool calls. */
export async function describeFile(part: Part): Promise<SandboxFile | null> {
  const { type, source, title = "", image_url, file, text = "" } = part;
  if (type === "image" && source) return describePicture(source.data);
  if (type === "image_url" && image_url) return describePicture(dataOf(image_url.url));
  if (type === "file" && file) return describeDocument(file.filename, dataOf(file.file_data));
  if (type === "document" && source) {
    if (source.type === "base64") return describeDocument(title, source.data);
    return describeText(title, source.data);
  }
  const [, name, content] = INLINED.exec(text) ?? [];
  if (name === undefined || content === undefined) return null;
  return describeText(JSON.parse(name), content);
}

/** How a message tells of a file whose content is not in the request. */
const NAMED =
  /^(?: {2}|\S[^:\n]{0,79}: )\(file ("(?:[^"\\\n]|\\.)*"), (.*?\d bytes); (?!it follows|only its beginning follows).*\)$/gm;

/** Describes the files that a text only names. */
export const namedFiles = (text: string): SandboxFile[] =>
  [...text.matchAll(NAMED)].map(([, name = "", facts]) => ({
    description: `the file «${unquoted(name)}» (${facts}), whose content I cannot see`,
    tokens: 0,
  }));

function unquoted(name: string): string {
  try {
    return JSON.parse(name);
  } catch {
    // A person has written something similar.
    return name;
  }
}

const dataOf = (url: string) => url.slice(url.indexOf(",") + 1);

async function describePicture(base64: string): Promise<SandboxFile> {
  const bytes = Buffer.from(base64, "base64");
  try {
    const size = await new Bun.Image(bytes).metadata();
    const names = await decodeInTurn("sandbox", () => coloursOf(bytes));
    const colours = names.length === 0 ? "of many colours" : `mostly ${names.join(" and ")}`;
    return {
      description: `a picture of ${size.width} × ${size.height} pixels, ${colours}`,
      tokens: estimateImageTokens("anthropic", size),
    };
  } catch {
    // Damaged, or of a format that cannot be decoded: the answer says so.
    return { description: "a picture that I cannot read", tokens: 0 };
  }
}

const describeDocument = (name: string, base64: string): SandboxFile => ({
  description: `the document «${name}» of ${Buffer.byteLength(base64, "base64")} bytes`,
  tokens: estimateDocumentTokens(1),
});

const MAX_WORDS = 12;
const MAX_CHARACTERS = 120;

function describeText(name: string, text: string): SandboxFile {
  const words = text.trim().split(/\s+/);
  const start = [...words.slice(0, MAX_WORDS).join(" ")].slice(0, MAX_CHARACTERS).join("");
  return {
    description: `the text file «${name}», which begins with «${start}»`,
    tokens: Math.ceil(text.length / 4),
  };
}
