import { afterAll, describe, expect, test } from "bun:test";
import { hostileMarkdown } from "@parley/testkit/hostile-markdown.ts";
import {
  actionTokens,
  mentionedHandles,
  parseMarkup,
  plainText,
} from "../packages/protocol/src/markup/index.ts";
import { closeOpenMarks } from "../packages/web/src/markdown/close-marks.ts";
import { MAX_NESTING, MAX_NODES, parseMarkdown } from "../packages/web/src/markdown/parse.ts";

/** A streaming message is parsed again for each delta. */
const STREAMED_PIECES = 16;

interface Measured {
  depth: number;
  nodes: number;
}

/** Iterative, so that a tree that is too deep fails the assertion and not the measurement. */
function measure(tree: unknown): Measured {
  let depth = 0;
  let nodes = 0;
  const waiting: [node: unknown, depth: number][] = [[tree, 0]];
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const [node, at] = next;
    if (typeof node !== "object" || node === null) continue;
    depth = Math.max(depth, at);
    if (!Array.isArray(node)) nodes++;
    for (const child of Object.values(node))
      waiting.push([child, Array.isArray(node) ? at : at + 1]);
  }
  return { depth, nodes };
}

/** Parses a message the way the web client does: components, and the Markdown between them. */
function rendered(content: string, streaming: boolean): Measured {
  let most = { depth: 0, nodes: 0 };
  for (const block of parseMarkup(content, { streaming })) {
    if (block.type !== "markdown") continue;
    const { depth, nodes } = measure(
      parseMarkdown(streaming ? closeOpenMarks(block.text) : block.text),
    );
    most = { depth: Math.max(most.depth, depth), nodes: Math.max(most.nodes, nodes) };
  }
  return most;
}

function streamed(content: string): Measured {
  let most = { depth: 0, nodes: 0 };
  for (let piece = 1; piece <= STREAMED_PIECES; piece++) {
    const end = Math.ceil((content.length * piece) / STREAMED_PIECES);
    const { depth, nodes } = rendered(content.slice(0, end), true);
    most = { depth: Math.max(most.depth, depth), nodes: Math.max(most.nodes, nodes) };
  }
  return most;
}

const report: string[] = [];

function timed<T>(run: () => T): [result: T, time: string] {
  const start = performance.now();
  const result = run();
  return [result, `${(performance.now() - start).toFixed(0)} ms`.padStart(8)];
}

describe("a hostile message is parsed to a bounded tree", () => {
  test.each(Object.entries(hostileMarkdown))("such as %s", (name, content) => {
    const [whole, wholeTime] = timed(() => rendered(content, false));
    const [growing, growingTime] = timed(() => streamed(content));
    const [, serverTime] = timed(() => {
      const handles = mentionedHandles(content);
      const { actions } = actionTokens(content);
      return [handles, actions, plainText(content)];
    });
    report.push(
      `${name.padEnd(28)} depth ${String(whole.depth).padStart(3)}  nodes ${String(whole.nodes).padStart(5)}` +
        `  rendered ${wholeTime}  in ${STREAMED_PIECES} pieces ${growingTime}  on the server ${serverTime}`,
    );
    expect(measure(parseMarkup(content)).depth).toBeLessThanOrEqual(5);
    for (const { depth, nodes } of [whole, growing]) {
      // A list is one level for the parser and two in the tree: the list and its item.
      expect(depth).toBeLessThanOrEqual(2 * MAX_NESTING + 2);
      expect(nodes).toBeLessThanOrEqual(MAX_NODES);
    }
  });
});

afterAll(() => process.stdout.write(`\n${report.join("\n")}\n`));
