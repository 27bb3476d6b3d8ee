import { setImmediate } from "node:timers/promises";

/** JSON of others that would cost too much to parse and validate. */
export class TooComplex extends Error {
  override name = "TooComplex";
}

export interface JsonBounds {
  /** Values, and separators between them, outside of strings. */
  readonly maxTokens: number;
  readonly maxDepth: number;
}

/** Objects with more keys are parsed and validated many times slower. */
const MAX_CHEAP_KEYS = 128;
/** What each further key counts. */
const KEY_TOKENS = 10;

/** Counted at a time: a few milliseconds. Other work of the process goes on in between. */
const PIECE_BYTES = 256 * 1024;

const [QUOTE, BACKSLASH, NEWLINE, COMMA] = [0x22, 0x5c, 0x0a, 0x2c];
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/**
 * Passes JSON, or events with JSON, on as it is, and fails with `TooComplex` beyond the bounds:
 * validating a megabyte of tiny values takes seconds, in which the process does nothing else. A line
 * break ends a string, because JSON has none inside of strings: so that no stray quote in an event
 * stream hides what follows it.
 */
export function boundedJson(bounds: JsonBounds) {
  let state = beginning();
  return new TransformStream<Uint8Array, Uint8Array>({
    async transform(chunk, controller) {
      for (let start = 0; start < chunk.length; start += PIECE_BYTES) {
        if (start > 0) await setImmediate();
        state = count(chunk.subarray(start, start + PIECE_BYTES), state, bounds);
      }
      controller.enqueue(chunk);
    },
  });
}

/** Deeper than all that any operation takes. */
const MAX_INPUT_DEPTH = 64;
/** Shorter texts take no time to parse, whatever is in them. */
const UNCHECKED_CHARACTERS = 4096;

/** Parses the input of a call. What is nested too deeply is null: it takes longer to parse than its bytes cost. */
export const parseInput = (text: string): unknown =>
  JSON.parse(text.length > UNCHECKED_CHARACTERS ? withoutDepths(text) : text);

function withoutDepths(text: string): string {
  const kept: string[] = [];
  let [start, depth, inString] = [0, 0, false];
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (inString && code === BACKSLASH) index++;
    else if (code === QUOTE) inString = !inString;
    else if (inString) continue;
    else if (code === OPEN_LIST || code === OPEN_OBJECT) {
      if (++depth === MAX_INPUT_DEPTH + 1) kept.push(text.slice(start, index), "null");
    } else if (code === CLOSE_LIST || code === CLOSE_OBJECT) {
      if (depth-- === MAX_INPUT_DEPTH + 1) start = index + 1;
    }
  }
  // What does not end is no JSON, whatever is left of it.
  return kept.length === 0 ? text : kept.join("") + text.slice(start);
}

/** Throws `TooComplex` for JSON beyond the bounds. */
export function checkJson(bytes: Uint8Array, bounds: JsonBounds): void {
  count(bytes, beginning(), bounds);
}

const beginning = (): JsonState => ({ tokens: 0, open: [], inString: false, isEscaped: false });

interface JsonState {
  readonly tokens: number;
  /** The number of keys of each object that is open. Lists have none. */
  readonly open: number[];
  readonly inString: boolean;
  readonly isEscaped: boolean;
}

/** With an index and local variables, which is several times faster than with an iterator. */
function count(chunk: Uint8Array, state: JsonState, bounds: JsonBounds): JsonState {
  let { tokens, inString, isEscaped } = state;
  const { open } = state;
  for (let index = 0; index < chunk.length; index++) {
    const byte = chunk[index];
    if (byte === NEWLINE) inString = isEscaped = false;
    else if (isEscaped) isEscaped = false;
    else if (byte === QUOTE) inString = !inString;
    else if (inString) isEscaped = byte === BACKSLASH;
    else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
      open.push(byte === OPEN_OBJECT ? 1 : Number.NEGATIVE_INFINITY);
      tokens++;
    } else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) open.pop();
    else if (byte === COMMA) {
      const keys = (open.at(-1) ?? Number.NEGATIVE_INFINITY) + 1;
      if (open.length > 0) open[open.length - 1] = keys;
      tokens += keys > MAX_CHEAP_KEYS ? KEY_TOKENS : 1;
    }
    if (open.length > bounds.maxDepth || tokens > bounds.maxTokens) {
      throw new TooComplex("the response is too complex");
    }
  }
  return { tokens, open, inString, isEscaped };
}
