/** Uploads and downloads, for the generator. */

interface Person {
  url: string;
  token: string;
  conversation: string;
}

/** Uploads a file and returns its id. */
export async function storeFile({ size, ...person }: Person & { size: number }) {
  const { upload_url, file } = await announce(person, size);
  await put(upload_url, new Uint8Array(size).fill(255));
  return { file_id: file.id };
}

interface Transfers extends Person {
  /** The file to download, and its size. */
  file_id: string;
  size: number;
  /** How many uploads and how many downloads run at a time. */
  transfers: number;
  /** Of each upload and each download. */
  bytesPerSecond: number;
  /** Of each file to upload. When one is stored, the next one begins. */
  uploadBytes: number;
  /** How long all transfers are under way before their bytes are counted, and how long after that. */
  leadSeconds: number;
  seconds: number;
}

const CHUNKS_PER_SECOND = 4;

/** Runs uploads and downloads at a fixed rate, and counts their bytes. */
export async function transfers(input: Transfers) {
  const { transfers: count, leadSeconds, seconds } = input;
  const ended = AbortSignal.timeout((leadSeconds + seconds) * 1000);
  const moved = { uploaded: 0, downloaded: 0, stored: 0 };
  setTimeout(
    () => Object.assign(moved, { uploaded: 0, downloaded: 0, stored: 0 }),
    leadSeconds * 1000,
  );
  const links = await callAs<{ items: { url: string }[] }>(input, "getFileLinks", {
    file_ids: [input.file_id],
  });
  const url = links.items[0]?.url ?? "";
  const repeat = async (place: number, work: () => Promise<void>) => {
    // Spread over the time before bytes are counted: people do not begin at the same moment.
    await Bun.sleep((place / count) * leadSeconds * 1000);
    try {
      while (!ended.aborted) await work();
    } catch (error) {
      if (!ended.aborted) throw error;
    }
  };
  await Promise.all(
    Array.from({ length: count }).flatMap((_, place) => [
      repeat(place, () => upload(input, moved, ended)),
      repeat(place, () => download(input, url, moved, ended)),
    ]),
  );
  return moved;
}

interface Moved {
  uploaded: number;
  downloaded: number;
  /** Uploads that ended. */
  stored: number;
}

async function upload(input: Transfers, moved: Moved, signal: AbortSignal): Promise<void> {
  const { bytesPerSecond, uploadBytes } = input;
  const chunk = new Uint8Array(bytesPerSecond / CHUNKS_PER_SECOND).fill(255);
  let left = uploadBytes / chunk.length;
  const { upload_url } = await announce(input, uploadBytes);
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      await Bun.sleep(1000 / CHUNKS_PER_SECOND);
      moved.uploaded += chunk.length;
      controller.enqueue(chunk);
      if (--left === 0) controller.close();
    },
  });
  await put(upload_url, body, signal);
  moved.stored++;
}

/**
 * A part of the file each second, as players of video load it. A slow reader of the whole file would
 * measure little: the kernel buffers megabytes of each connection, so that for half a minute no bytes
 * would leave the server.
 */
async function download(
  { bytesPerSecond, size }: Transfers,
  url: string,
  moved: Moved,
  signal: AbortSignal,
): Promise<void> {
  const due = Bun.sleep(1000);
  const start = Math.floor(Math.random() * (size - bytesPerSecond));
  const headers = { range: `bytes=${start}-${start + bytesPerSecond - 1}` };
  const part = await (await fetch(url, { headers, signal })).bytes();
  moved.downloaded += part.length;
  await due;
}

const announce = (person: Person, size: number) =>
  callAs<{ upload_url: string; file: { id: string } }>(person, "createUpload", {
    chat_id: person.conversation,
    name: "bench.bin",
    size,
  });

async function put(url: string, body: BodyInit, signal?: AbortSignal): Promise<void> {
  const response = await fetch(url, { method: "PUT", body, ...(signal && { signal }) });
  if (!response.ok) throw new Error(`the upload failed: ${await response.text()}`);
  await response.bytes();
}

async function callAs<Result>({ url, token }: Person, name: string, input: object) {
  const response = await fetch(`${url}/api/${name}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: JSON.stringify(input),
  });
  const body = (await response.json()) as { ok: boolean; result: Result };
  if (!body.ok) throw new Error(`${name} failed: ${JSON.stringify(body)}`);
  return body.result;
}
