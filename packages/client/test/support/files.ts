export const textFile = (text: string, name = "notes.txt") => new File([text], name);

const ONE_PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** A picture of one pixel. */
export const picture = () =>
  new File([Uint8Array.fromBase64(ONE_PIXEL)], "dot.png", { type: "image/png" });
