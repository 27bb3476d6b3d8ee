export const textFile = (text: string, name = "notes.txt") => new File([text], name);

const ONE_PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** A picture of one pixel. */
export const picture = () =>
  new File([Uint8Array.fromBase64(ONE_PIXEL)], "dot.png", { type: "image/png" });

/** Calls to the service by name, of a client that uses no socket. */
export function recordingFetch() {
  const calls: string[] = [];
  const send = ((url: string, request: RequestInit) => {
    calls.push(new URL(url).pathname.split("/").at(-1) ?? "");
    return fetch(url, request);
  }) as typeof fetch;
  const count = (name: string) => calls.filter((each) => each === name).length;
  return { fetch: send, calls, count };
}
