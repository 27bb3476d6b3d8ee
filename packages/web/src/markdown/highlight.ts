import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import c from "highlight.js/lib/languages/c";
import cpp from "highlight.js/lib/languages/cpp";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import go from "highlight.js/lib/languages/go";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import markdown from "highlight.js/lib/languages/markdown";
import python from "highlight.js/lib/languages/python";
import ruby from "highlight.js/lib/languages/ruby";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";

const languages = {
  bash,
  c,
  cpp,
  css,
  diff,
  go,
  java,
  javascript,
  json,
  markdown,
  python,
  ruby,
  rust,
  sql,
  typescript,
  xml,
  yaml,
};
for (const [name, language] of Object.entries(languages)) hljs.registerLanguage(name, language);

/** A node of highlighted code; `scope` is the kind of token. */
export interface CodeNode {
  scope?: string;
  children: (CodeNode | string)[];
}

/** Limits of one call: the time of the grammars can grow with the square of both lengths. */
const PIECE_CHARACTERS = 4096;
const LINE_CHARACTERS = 1024;
const BUDGET_MS = 100;
/** Deeper than real code nests, and shallow enough for the renderer. */
export const MAX_CODE_NESTING = 32;

/**
 * Highlights code as a tree instead of HTML; null for an unknown language. Time and depth are limited:
 * pieces beyond a limit stay plain text.
 */
export function highlight(code: string, language: string, budgetMs = BUDGET_MS): CodeNode | null {
  if (!hljs.getLanguage(language)) return null;
  const deadline = performance.now() + budgetMs;
  const children = piecesOf(code).flatMap((piece) => {
    const isSkipped = isLongLine(piece) || performance.now() > deadline;
    return isSkipped ? piece : highlightPiece(piece, language);
  });
  return { children };
}

/** Splits code into pieces of whole lines; a long line is a piece of its own. */
function piecesOf(code: string): string[] {
  const pieces: string[] = [];
  for (const line of code.split(/(?<=\n)/)) {
    const last = pieces.at(-1);
    const startsPiece =
      last === undefined ||
      isLongLine(last) ||
      isLongLine(line) ||
      last.length + line.length > PIECE_CHARACTERS;
    if (startsPiece) pieces.push(line);
    else pieces[pieces.length - 1] = last + line;
  }
  return pieces;
}

const isLongLine = (piece: string) =>
  piece.length > LINE_CHARACTERS && !piece.slice(0, -1).includes("\n");

function highlightPiece(piece: string, language: string): CodeNode["children"] {
  const result = hljs.highlight(piece, { language, ignoreIllegals: true });
  const { root } = result._emitter as unknown as { root: CodeNode };
  return nesting(root) > MAX_CODE_NESTING ? [piece] : root.children;
}

const nesting = (node: CodeNode | string): number =>
  typeof node === "string" ? 0 : 1 + Math.max(0, ...node.children.map(nesting));
