type Encoding = "utf-8" | "utf-16le" | "utf-16be" | "windows-1252";

/** At most this share of a text in windows-1252 is beyond ASCII. In other old encodings it is larger. */
const MAX_LATIN_SHARE = 0.3;
const ASCII_END = 0x80;
/** Characters that texts do not have. In other files they are common. */
const CONTROLS = /(?![\t\n\f\r])\p{Cc}/u;

export interface DecodedText {
  readonly text: string;
  readonly encoding: Encoding;
}

/**
 * The text of a file in UTF-8, in UTF-16 with a byte order mark, or in windows-1252; null if it is no
 * text. The last character may be incomplete if the bytes are only the beginning of the file.
 */
export function decodeText(bytes: Uint8Array, isWhole: boolean): DecodedText | null {
  const utf16 = encodingByMark(bytes);
  if (utf16) return withoutControls(decode(bytes, utf16, isWhole));
  if (bytes.includes(0)) return null;
  return decode(bytes, "utf-8", isWhole) ?? latinText(bytes);
}

/** The text of a file that was recognized as text by its beginning. Damaged characters are replaced. */
export function decodeKnownText(bytes: Uint8Array, type: string, isWhole: boolean): string {
  const encoding = encodingByMark(bytes) ?? (type === LATIN_TYPE ? "windows-1252" : "utf-8");
  return new TextDecoder(encoding).decode(bytes, { stream: !isWhole });
}

/** The media type of plain text. Browsers need to know an encoding that is not UTF-8. */
export const plainTextType = (encoding: Encoding) =>
  encoding === "utf-8" ? "text/plain" : `text/plain; charset=${encoding}`;

const LATIN_TYPE = plainTextType("windows-1252");

function encodingByMark([first, second]: Uint8Array): "utf-16le" | "utf-16be" | null {
  if (first === 0xff && second === 0xfe) return "utf-16le";
  return first === 0xfe && second === 0xff ? "utf-16be" : null;
}

function latinText(bytes: Uint8Array): DecodedText | null {
  let beyondAscii = 0;
  // Iterating over the bytes takes 25 times as long: more than a millisecond of the event loop.
  for (let at = 0; at < bytes.length; at++) if ((bytes[at] ?? 0) >= ASCII_END) beyondAscii++;
  if (beyondAscii > bytes.length * MAX_LATIN_SHARE) return null;
  return withoutControls(decode(bytes, "windows-1252", true));
}

function decode(bytes: Uint8Array, encoding: Encoding, isWhole: boolean): DecodedText | null {
  try {
    const text = new TextDecoder(encoding, { fatal: true }).decode(bytes, { stream: !isWhole });
    return { text, encoding };
  } catch {
    // The bytes are not of this encoding.
    return null;
  }
}

const withoutControls = (decoded: DecodedText | null) =>
  decoded && !CONTROLS.test(decoded.text) ? decoded : null;
