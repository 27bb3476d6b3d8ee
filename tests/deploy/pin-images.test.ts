import { expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pinImages } from "../../scripts/pin-images.ts";

const manifest = JSON.stringify({ schemaVersion: 2, manifests: [] });
const digest = `sha256:${createHash("sha256").update(manifest).digest("hex")}`;

/** A registry that requires a token for manifests, as public ones do. */
function startRegistry() {
  return Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    routes: {
      "/token": (request) => {
        const { searchParams } = new URL(request.url);
        return Response.json({ token: searchParams.get("scope") });
      },
      "/v2/team/app/manifests/1.2": (request) => {
        const scope = "repository:team/app:pull";
        if (request.headers.get("authorization") === `Bearer ${scope}`)
          return new Response(manifest);
        const realm = `http://${request.headers.get("host")}/token`;
        const challenge = `Bearer realm="${realm}",service="registry",scope="${scope}"`;
        return new Response(null, { status: 401, headers: { "www-authenticate": challenge } });
      },
    },
    fetch: () => new Response(null, { status: 404 }),
  });
}

test("images are pinned by the digest in the registry, and can be pinned again", async () => {
  await using registry = startRegistry();
  const image = `127.0.0.1:${registry.port}/team/app:1.2`;
  const folder = mkdtempSync(join(tmpdir(), "parley-images-"));
  const [dockerfile, compose] = [join(folder, "Dockerfile"), join(folder, "compose.yaml")];
  await Bun.write(dockerfile, `FROM ${image} AS build\nCOPY . .\nFROM ${image}\n`);
  await Bun.write(
    compose,
    `a:\n  image: ${image}@sha256:${"0".repeat(64)}\nb:\n  image: parley:local\n`,
  );
  for (let times = 0; times < 2; times++) {
    expect(await pinImages([dockerfile, compose])).toEqual([`${image}@${digest}`]);
    expect(await Bun.file(dockerfile).text()).toBe(
      `FROM ${image}@${digest} AS build\nCOPY . .\nFROM ${image}@${digest}\n`,
    );
    expect(await Bun.file(compose).text()).toBe(
      `a:\n  image: ${image}@${digest}\nb:\n  image: parley:local\n`,
    );
  }
  await Bun.write(dockerfile, `FROM ${image.replace("1.2", "9.9")}\n`);
  await expect(pinImages([dockerfile])).rejects.toThrow("the registry answered 404");
  rmSync(folder, { recursive: true });
});

test("every image has a tag, not latest, and pinned ones have a digest", async () => {
  const root = join(import.meta.dir, "../..");
  const files = ["Dockerfile", ...new Bun.Glob("deploy/**/*.yaml").scanSync(root)];
  const texts = await Promise.all(files.map((file) => Bun.file(join(root, file)).text()));
  const images = texts
    .flatMap((text) => [...text.matchAll(/^\s*(?:FROM|image:)\s+(\S+)/gm)])
    .map(([, image = ""]) => image)
    .filter((image) => !/parley:local/.test(image));
  expect(images.length).toBeGreaterThan(4);
  for (const image of images) expect(image).toMatch(/^[\w./-]+:[\w.-]+(@sha256:[0-9a-f]{64})?$/);
  expect(images.filter((image) => /:latest\b/.test(image))).toEqual([]);
});
