import type { ToolDefinition } from "./model-content.ts";

/** What providers add for each message. */
const TOKENS_PER_MESSAGE = 8;
/** A longer run of characters without a space is no word but an identifier, a hash or the like. */
const MAX_WORD_CHARACTERS = 12;
const TOKENS_PER_UNBROKEN_CHARACTER = 0.85;

/**
 * Estimates the tokens of a message without a tokenizer. It aims high rather than low. A word costs
 * one token and more the longer it is, a sign costs one, digits and capitals cost more than other
 * letters, long runs without a space cost nearly one token a character, and characters outside
 * ASCII cost up to one token a byte.
 */
export function estimateTokens(text: string): number {
  let tokens = TOKENS_PER_MESSAGE;
  let previous: Kind = "space";
  let run = 0;
  let unbroken = 0;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    const kind = kindOf(code);
    // A capital and the lower-case letters after it are one word.
    const isCapitalised = kind === "lower" && previous === "upper" && run === 1;
    run = kind === previous || isCapitalised ? run + 1 : 1;
    unbroken = code <= 32 || kind === "wide" ? 0 : unbroken + 1;
    previous = kind;
    if (kind === "wide") tokens += wideCost(code);
    else if (unbroken > MAX_WORD_CHARACTERS) tokens += TOKENS_PER_UNBROKEN_CHARACTER;
    else tokens += asciiCost(kind, run);
  }
  return Math.ceil(tokens);
}

/** `wide`: outside ASCII. */
type Kind = "lower" | "upper" | "digit" | "space" | "sign" | "wide";

function kindOf(code: number): Kind {
  if (code >= 128) return "wide";
  if (code >= 97 && code <= 122) return "lower";
  if (code >= 65 && code <= 90) return "upper";
  if (code >= 48 && code <= 57) return "digit";
  return code === 32 ? "space" : "sign";
}

/** The cost of a character that is the last of `run` characters of its kind. */
function asciiCost(kind: Exclude<Kind, "wide">, run: number): number {
  // A single space is part of the token of the word after it.
  if (kind === "space") return run === 1 ? 0 : 0.25;
  if (kind === "sign" || run === 1) return 1;
  if (kind === "digit") return 0.5;
  if (kind === "upper") return run === 2 ? 0 : 0.5;
  return run <= 3 ? 0 : 1 / 3;
}

/** Tokenizers encode unknown characters as bytes. They know most ideographs. */
function wideCost(code: number): number {
  // Surrogates are half of a character of four bytes.
  if (code < 0x800 || (code >= 0xd800 && code <= 0xdfff)) return 2;
  return code >= 0x3000 && code <= 0xd7a3 ? 2.5 : 3;
}

/** The longer side of the pictures that models get, at most. Providers scale larger ones down. */
export const MAX_IMAGE_SIDE = 1568;
/** Providers read the text of each page and see a picture of it. */
const TOKENS_PER_PAGE = 3000;

interface Size {
  readonly width: number;
  readonly height: number;
}

/**
 * Estimates the tokens of a picture by the published rule of the protocol, after it was scaled down
 * to `MAX_IMAGE_SIDE`.
 */
export function estimateImageTokens(protocol: "anthropic" | "openai", size: Size): number {
  const { width, height } = scaledDown(size, MAX_IMAGE_SIDE / Math.max(size.width, size.height));
  if (protocol === "anthropic") return Math.ceil((width * height) / 750);
  // OpenAI scales the shorter side to 768 pixels and counts tiles of 512 × 512.
  const scaled = scaledDown({ width, height }, 768 / Math.min(width, height));
  return 85 + 170 * Math.ceil(scaled.width / 512) * Math.ceil(scaled.height / 512);
}

function scaledDown({ width, height }: Size, factor: number): Size {
  const scale = Math.min(1, factor);
  return { width: Math.round(width * scale), height: Math.round(height * scale) };
}

export const estimateDocumentTokens = (pages: number) => pages * TOKENS_PER_PAGE;

/** What providers tell the model about tools if there are any. Anthropic adds the most, up to 530. */
const TOKENS_OF_TOOL_USE = 600;

/** Estimates the tokens of tool definitions in a request. It aims high, as `estimateTokens`. */
export function toolTokens(definitions: readonly ToolDefinition[]): number {
  if (definitions.length === 0) return 0;
  const each = definitions.map((definition) => estimateTokens(JSON.stringify(definition)));
  return each.reduce((sum, tokens) => sum + tokens, TOKENS_OF_TOOL_USE);
}
