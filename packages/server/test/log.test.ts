import { expect, test } from "bun:test";
import { join } from "node:path";

test("errors are logged without their input, which may contain a token", async () => {
  const script = `
    import { createLogger } from ${JSON.stringify(join(import.meta.dir, "../src/observe/log.ts"))};
    try {
      new URL("http://host:99999/api/ws?token=ply_secret");
    } catch (err) {
      createLogger("info").error({ err }, "request failed");
    }`;
  const child = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe" });
  const line = await child.stdout.text();
  expect(JSON.parse(line)).toMatchObject({
    err: { message: "Invalid URL" },
    msg: "request failed",
  });
  expect(line).not.toContain("ply_secret");
});
