import { Failure, failure } from "../rules/failure.ts";
import { checkJson, type JsonBounds, parseInput, TooComplex } from "../security/bounded-json.ts";

/** The JSON in the body of a request; an empty object if there is no body. */
export async function readJson(
  request: Request,
  maxBytes: number,
  { bounds, onRead }: { bounds?: JsonBounds; onRead?: (bytes: number) => void } = {},
): Promise<unknown> {
  if (lengthOf(request, maxBytes) === 0 || request.body === null) return {};
  const type = request.headers.get("content-type") ?? "";
  if (!/^application\/json\s*(;|$)/i.test(type)) {
    throw failure("unsupported_media_type", "send content-type: application/json");
  }
  const bytes = await readBytes(request.body, maxBytes);
  onRead?.(bytes.byteLength);
  if (bounds) checkBounds(bytes, bounds);
  try {
    const text = decode(bytes);
    return text.trim() === "" ? {} : parseInput(text);
  } catch {
    throw failure("bad_request", "the body is not valid JSON in UTF-8");
  }
}

/** The body of a request as text, whatever its type. */
export async function readText(request: Request, maxBytes: number): Promise<string> {
  lengthOf(request, maxBytes);
  if (request.body === null) return "";
  const bytes = await readBytes(request.body, maxBytes);
  try {
    return decode(bytes);
  } catch {
    throw failure("bad_request", "the body is not valid UTF-8");
  }
}

/** The length that the request declares, or NaN. */
function lengthOf({ headers }: Request, maxBytes: number): number {
  const length = Number(headers.get("content-length") ?? Number.NaN);
  if (length > maxBytes) throw tooLarge(maxBytes);
  return length;
}

const decode = (bytes: Uint8Array) => new TextDecoder("utf-8", { fatal: true }).decode(bytes);

async function readBytes(body: ReadableStream<Uint8Array>, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of body) {
      size += chunk.byteLength;
      if (size > maxBytes) throw tooLarge(maxBytes);
      chunks.push(chunk);
    }
  } catch (error) {
    // Only the client can make the stream fail: it went away, or sent nothing for too long.
    throw error instanceof Failure ? error : connectionClosed();
  }
  return chunks.length === 1 ? (chunks[0] as Uint8Array) : Buffer.concat(chunks);
}

function checkBounds(bytes: Uint8Array, bounds: JsonBounds): void {
  try {
    checkJson(bytes, bounds);
  } catch (error) {
    if (!(error instanceof TooComplex)) throw error;
    const { maxTokens, maxDepth } = bounds;
    const why = `at most ${maxTokens} values, nested at most ${maxDepth} levels deep`;
    throw failure("bad_request", why);
  }
}

export const connectionClosed = () => failure("bad_request", "the connection was closed");

const tooLarge = (maxBytes: number) => failure("payload_too_large", `at most ${maxBytes} bytes`);
