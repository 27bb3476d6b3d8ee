import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./pack.ts";

interface Installed {
  readonly name: string;
  readonly version: string;
  readonly license?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
}

/** The licences of all packages whose code the bundle of the server and the web client may contain. */
export async function thirdPartyLicenses(): Promise<string> {
  const found = new Map<string, string>();
  for (const name of ["protocol", "client", "server", "web"]) {
    collect(join(ROOT, "packages", name), found);
  }
  const sections = [...found.values()].toSorted();
  return `This package contains code of the packages below.\n\n${sections.join("\n")}`;
}

function collect(folder: string, found: Map<string, string>): void {
  const own = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Installed;
  for (const name of Object.keys(own.dependencies ?? {})) {
    const place = [join(folder, "node_modules", name), join(ROOT, "node_modules", name)].find(
      (path) => existsSync(path),
    );
    if (name.startsWith("@parley/") || !place || found.has(name)) continue;
    found.set(name, sectionOf(place));
    collect(place, found);
  }
}

function sectionOf(folder: string): string {
  const read = (file: string) => readFileSync(join(folder, file), "utf8");
  const { name, version, license } = JSON.parse(read("package.json")) as Installed;
  const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
  const text = file ? read(file).trim() : `Licence: ${license ?? "unknown"}`;
  return `${"=".repeat(80)}\n${name} ${version} (${license ?? "unknown"})\n\n${text}\n`;
}
