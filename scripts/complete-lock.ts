/**
 * Adds to package-lock.json the optional packages of other platforms that npm left out because the
 * registry at hand does not carry them. Without them `npm ci` refuses the file. Run it after every
 * change of the dependencies.
 */
const FILE = new URL("../package-lock.json", import.meta.url);
const PLATFORM =
  /-(android|darwin|freebsd|linux|openharmony|win32)(?:-(arm64|arm|ia32|ppc64|riscv64|s390x|x64))?(?:-(gnu|musl|\w+))?$/;

interface Entry {
  version: string;
  dev?: boolean;
  optionalDependencies?: Record<string, string>;
}

const lock = (await Bun.file(FILE).json()) as { packages: Record<string, Entry> };
for (const { optionalDependencies = {}, dev } of Object.values(lock.packages)) {
  for (const [name, version] of Object.entries(optionalDependencies)) {
    lock.packages[`node_modules/${name}`] ??= entryFor(name, version, dev);
  }
}
const sorted = Object.entries(lock.packages).sort(([one], [other]) => (one < other ? -1 : 1));
await Bun.write(
  FILE,
  `${JSON.stringify({ ...lock, packages: Object.fromEntries(sorted) }, null, 2)}\n`,
);

function entryFor(name: string, version: string, dev: boolean | undefined): Entry {
  const [, os, cpu, libc = ""] = PLATFORM.exec(name) ?? [];
  const entry = {
    version,
    ...(cpu && { cpu: [cpu] }),
    ...(dev && { dev }),
    ...(os === "linux" && { libc: [libc.startsWith("musl") ? "musl" : "glibc"] }),
    optional: true,
    ...(os && { os: [os] }),
  };
  return entry;
}
