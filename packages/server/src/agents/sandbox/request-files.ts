import { decodeInTurn } from "../../files/decoding.ts";
import type { FilePart, ImagePart, ModelMessage } from "../../rules/model-content.ts";
import { estimateDocumentTokens, estimateImageTokens } from "../../rules/token-estimate.ts";
import { decodeText, isTextFile } from "../providers/file-text.ts";
import { coloursOf } from "./picture-colours.ts";

/** A file of a request, as the sandbox describes it. */
interface SandboxFile {
  /** A phrase such as «a picture of 640 × 480 pixels, mostly red and white». May have markup. */
  description: string;
  /** Estimated. */
  tokens: number;
}

/** The files of a message, and those that its text only names. */
export async function filesOf({ content }: ModelMessage, text: string): Promise<SandboxFile[]> {
  const files = content.filter((part) => part.type === "image" || part.type === "file");
  const described = await Promise.all(
    files.map((part) => (part.type === "image" ? describePicture(part) : describeFile(part))),
  );
  return [...described, ...namedFiles(text)];
}

/** How a message tells of a file whose content is not in the request. */
const NAMED =
  /^(?: {2}|\S[^:\n]{0,79}: )\(file ("(?:[^"\\\n]|\\.)*"), (.*?\d bytes); (?!it follows|only its beginning follows).*\)$/gm;

const namedFiles = (text: string): SandboxFile[] =>
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

async function describePicture({ data }: ImagePart): Promise<SandboxFile> {
  try {
    const size = await new Bun.Image(data).metadata();
    const names = await decodeInTurn("sandbox", () => coloursOf(data));
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

const MAX_WORDS = 12;
const MAX_CHARACTERS = 120;

function describeFile(file: FilePart): SandboxFile {
  const { name, data } = file;
  if (!isTextFile(file)) {
    const description = `the document «${name}» of ${data.length} bytes`;
    return { description, tokens: estimateDocumentTokens(1) };
  }
  const text = decodeText(file);
  const words = text.trim().split(/\s+/);
  const start = [...words.slice(0, MAX_WORDS).join(" ")].slice(0, MAX_CHARACTERS).join("");
  return {
    description: `the text file «${name}», which begins with «${start}»`,
    tokens: Math.ceil(text.length / 4),
  };
}
