import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "./postgres.ts";
import { tool } from "./tools.ts";

/** A server that speaks the protocol of S3, with one bucket. */
export interface TestS3 extends AsyncDisposable {
  readonly url: string;
  readonly bucket: string;
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string };
}

export async function startS3(): Promise<TestS3> {
  const directory = mkdtempSync(join(tmpdir(), "parley-s3-"));
  const bucket = "parley-files";
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const child = Bun.spawn(
    [
      ...["node", tool("s3rver"), "--directory", directory, "--silent"],
      ...["--address", "127.0.0.1", "--port", `${port}`, "--configure-bucket", bucket],
    ],
    { stdout: "ignore", stderr: "ignore" },
  );
  // It is asked until it listens.
  while (!(await fetch(url).catch(() => null))) {
    if (child.exitCode !== null) throw new Error("the S3 server did not start");
    await Bun.sleep(10);
  }
  return {
    url,
    bucket,
    // The server accepts only these.
    credentials: { accessKeyId: "S3RVER", secretAccessKey: "S3RVER" },
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
