import { openSync, writeSync } from "node:fs";
import { open, rename } from "node:fs/promises";
import { join } from "node:path";
import { startLogSync } from "../packages/server/src/store/sqlite/log-sync.ts";

/** What a send appends to the log. */
const LOG_PAGE = Buffer.alloc(4096, 1);

export interface FileFloor {
  /** Appends to a log, and resolves once it is on disk. One sync serves all that waited for it. */
  append(): Promise<void>;
  /** Answers the requests of uploads and downloads; undefined for others. */
  serve(request: Request): Promise<Response> | Response | undefined;
}

/** The least that a server with files does: it syncs a log for each send, and stores and sends bytes. */
export function fileFloor(folder: string): FileFloor {
  const path = join(folder, "floor");
  const log = openSync(`${path}-wal`, "a");
  const { sync } = startLogSync(path);
  let syncing: Promise<void> = Promise.resolve();
  let next: Promise<void> | null = null;
  return {
    append() {
      writeSync(log, LOG_PAGE);
      next ??= syncing.then(() => {
        next = null;
        syncing = sync();
        return syncing;
      });
      return next;
    },
    serve(request) {
      const { pathname, origin } = new URL(request.url);
      const stored = join(folder, pathname.slice(1));
      if (pathname === "/api/createUpload") {
        const id = Bun.randomUUIDv7();
        return Response.json({
          ok: true,
          result: { upload_url: `${origin}/${id}.file`, file: { id } },
        });
      }
      if (pathname === "/api/getFileLinks") return links(request, origin);
      if (!pathname.endsWith(".file")) return;
      return request.method === "PUT" ? receive(request, stored) : send(request, stored);
    },
  };
}

async function links(request: Request, origin: string): Promise<Response> {
  const { file_ids } = (await request.json()) as { file_ids: string[] };
  const items = file_ids.map((id) => ({ url: `${origin}/${id}.file` }));
  return Response.json({ ok: true, result: { items } });
}

async function receive(request: Request, path: string): Promise<Response> {
  const incoming = `${path}.incoming`;
  await using file = await open(incoming, "wx");
  for await (const chunk of request.body ?? []) await file.writeFile(chunk);
  await file.sync();
  await rename(incoming, path);
  return Response.json({ ok: true });
}

function send(request: Request, path: string): Response {
  const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.get("range") ?? "") ?? [];
  return new Response(Bun.file(path).slice(Number(first), Number(last) + 1), { status: 206 });
}
