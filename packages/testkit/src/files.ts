import type { File, HttpFailure } from "@parley/protocol";
import type { Person } from "./client.ts";

type Bytes = string | Uint8Array<ArrayBuffer> | Blob;

/** Announces a file and returns the address that takes its bytes. */
export const announce = (person: Person, chat_id: string, name: string, size: number) =>
  person.call("createUpload", { chat_id, name, size });

/** Sends bytes to the address of an upload. */
export async function put(
  upload_url: string,
  bytes: Bytes,
): Promise<{ status: number; body: { ok: true; result: File } | HttpFailure }> {
  const response = await fetch(upload_url, { method: "PUT", body: bytes });
  return { status: response.status, body: await response.json() };
}

/** Announces and sends a file; throws unless it becomes ready. */
export async function upload(
  person: Person,
  chat_id: string,
  name: string,
  bytes: Bytes,
): Promise<File> {
  const { size } = new Blob([bytes]);
  const { upload_url } = await announce(person, chat_id, name, size);
  const { body } = await put(upload_url, bytes);
  if (!body.ok) throw new Error(`the upload of ${name} failed: ${body.description}`);
  return body.result;
}

/** A PNG picture of one colour. */
export async function pngOf(width = 8, height = width): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await new Bun.Image(DOT).resize(width, height).png().bytes());
}

/** A red pixel. */
const DOT = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==",
  "base64",
);

/** Uploads a picture for `setAvatar` or `setChatPicture`. */
export async function uploadPicture(person: Person, bytes?: Bytes): Promise<File> {
  const body = bytes ?? (await pngOf());
  const { size } = new Blob([body]);
  const announced = { purpose: "picture", name: "me.png", size } as const;
  const { upload_url } = await person.call("createUpload", announced);
  const sent = await put(upload_url, body);
  if (!sent.body.ok) throw new Error(`the picture was refused: ${sent.body.description}`);
  return sent.body.result;
}

/** The address of a file, as one of its readers gets it. */
export async function linkOf(person: Person, file_id: string) {
  const { items } = await person.call("getFileLinks", { file_ids: [file_id] });
  const [link] = items;
  if (!link) throw new Error(`there is no link of the file ${file_id}`);
  return link;
}
