/**
 * Pins every image in the Dockerfile and in deploy/ to the digest that its registry now has for the
 * tag: `name:tag` becomes `name:tag@sha256:…`. Needs a connection to the registries.
 */
import { createHash } from "node:crypto";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "..");
const IMAGE =
  /^(\s*(?:FROM|image:)\s+)((?:[\w.-]+(?::\d+)?\/)?[\w./-]+):([\w.-]+)(?:@sha256:[0-9a-f]{64})?/gm;
/** Built from this repository; no registry has it. */
const OWN = "parley";
const MANIFESTS = [
  "application/vnd.oci.image.index.v1+json",
  "application/vnd.docker.distribution.manifest.list.v2+json",
  "application/vnd.oci.image.manifest.v1+json",
  "application/vnd.docker.distribution.manifest.v2+json",
].join(", ");

if (import.meta.main) {
  const files = ["Dockerfile", ...new Bun.Glob("deploy/**/*.yaml").scanSync(ROOT)];
  for (const pinned of await pinImages(files.map((file) => join(ROOT, file)))) {
    process.stdout.write(`${pinned}\n`);
  }
}

/** Rewrites the files and returns the pinned images. */
export async function pinImages(files: readonly string[]): Promise<string[]> {
  const digests = new Map<string, string>();
  for (const file of files) {
    const text = await Bun.file(file).text();
    const images = [...text.matchAll(IMAGE)].filter(([, , name]) => name !== OWN);
    for (const [, , name = "", tag = ""] of images) {
      const image = `${name}:${tag}`;
      if (!digests.has(image)) digests.set(image, await digestOf(name, tag));
    }
    const pinned = text.replace(IMAGE, (whole, before: string, name: string, tag: string) => {
      const digest = digests.get(`${name}:${tag}`);
      return digest ? `${before}${name}:${tag}@${digest}` : whole;
    });
    if (pinned !== text) await Bun.write(file, pinned);
  }
  return [...digests].map(([image, digest]) => `${image}@${digest}`);
}

/** Computes the digest from the manifest, so that a wrong digest of the registry has no effect. */
async function digestOf(name: string, tag: string): Promise<string> {
  const { registry, repository } = locate(name);
  const url = `${registry}/v2/${repository}/manifests/${tag}`;
  const headers = { accept: MANIFESTS };
  let response = await fetch(url, { headers });
  if (response.status === 401) {
    const authorization = await tokenFor(response.headers.get("www-authenticate") ?? "");
    response = await fetch(url, { headers: { ...headers, authorization } });
  }
  if (!response.ok) throw new Error(`${name}:${tag}: the registry answered ${response.status}`);
  return `sha256:${createHash("sha256")
    .update(await response.bytes())
    .digest("hex")}`;
}

/** A name without a registry is on Docker Hub; there, a name without an owner is an official image. */
function locate(name: string): { registry: string; repository: string } {
  const [first = "", ...rest] = name.split("/");
  if (rest.length > 0 && /[.:]/.test(first)) {
    const scheme = first.startsWith("127.0.0.1:") ? "http" : "https";
    return { registry: `${scheme}://${first}`, repository: rest.join("/") };
  }
  const repository = rest.length > 0 ? name : `library/${name}`;
  return { registry: "https://registry-1.docker.io", repository };
}

/** Fetches an anonymous read token from the address in the registry's challenge. */
async function tokenFor(challenge: string): Promise<string> {
  const parts = new Map(
    [...challenge.matchAll(/(\w+)="([^"]*)"/g)].map(([, key = "", value = ""]) => [key, value]),
  );
  const url = new URL(parts.get("realm") ?? "");
  for (const key of ["service", "scope"]) url.searchParams.set(key, parts.get(key) ?? "");
  const { token, access_token } = (await (await fetch(url)).json()) as Record<string, string>;
  return `Bearer ${token ?? access_token}`;
}
