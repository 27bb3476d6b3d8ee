#!/usr/bin/env bun
/**
 * Packs the packages as tarballs for other projects: `bun scripts/build-packages.ts [folder] [name …]`,
 * by default all of them into `dist/packages`.
 */
import { resolve } from "node:path";
import { packClient } from "./packages/client.ts";
import { packProtocol } from "./packages/protocol.ts";
import { packServer } from "./packages/server.ts";

const packages = { protocol: packProtocol, client: packClient, server: packServer };

const [folder = "dist/packages", ...named] = process.argv.slice(2);
const unknown = named.find((name) => !(name in packages));
if (unknown) throw new Error(`there is no package ${unknown}`);
for (const [name, build] of Object.entries(packages)) {
  if (named.length > 0 && !named.includes(name)) continue;
  process.stdout.write(`packing @parley/${name}\n`);
  await build(resolve(folder));
}
process.stdout.write(`The tarballs are in ${folder}\n`);
