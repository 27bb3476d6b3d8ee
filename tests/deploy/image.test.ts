import { describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { isPinned, ROOT, read, unknown } from "@parley/testkit/deploy.ts";

describe("the image", () => {
  const instructions = read("Dockerfile")
    .replace(/\\\n/g, "")
    .split("\n")
    .filter((line) => line && !line.startsWith("#"))
    .map((line) => line.split(/ (.*)/s) as [name: string, rest: string]);
  const all = (name: string) => instructions.filter(([each]) => each === name).map(([, on]) => on);
  const last = instructions.slice(instructions.findLastIndex(([name]) => name === "FROM"));

  test("is built from images with a fixed version", () => {
    const bases = all("FROM").map((from) => from.split(" ")[0] ?? "");
    expect(bases).toHaveLength(2);
    expect(bases.filter((base) => !isPinned(base))).toEqual([]);
  });

  test("installs its libraries from the lock file", () => {
    expect(all("RUN").filter((command) => /\bnpm\b/.test(command))).toEqual(["npm ci --omit=dev"]);
    const copied = all("COPY").join(" ");
    for (const name of readdirSync(join(ROOT, "packages"))) {
      expect(copied).toContain(`packages/${name}/package.json`);
    }
    expect(all("ADD")).toEqual([]);
  });

  test("contains the executable, and no secret", () => {
    const copies = last.filter(([name]) => name === "COPY").map(([, on]) => on);
    expect(copies.every((copy) => copy.startsWith("--from=build "))).toBe(true);
    const given = [...all("ENV"), ...all("ARG")].join(" ");
    expect(given).not.toMatch(/PASSWORD|SECRET|TOKEN|_KEY|_URL/);
  });

  test("runs as a user other than root, with existing settings", () => {
    const [user = ""] = last.filter(([name]) => name === "USER").map(([, on]) => on);
    expect(user).toMatch(/^[1-9]\d+:[1-9]\d+$/);
    const names = [...(all("ENV")[0] ?? "").matchAll(/(\w+)=/g)].map(([, name = ""]) => name);
    expect(names).toContain("HOST");
    expect(unknown(names)).toEqual([]);
  });

  test("has the ready command as its health check", () => {
    const [program = ""] = JSON.parse(all("ENTRYPOINT")[0] ?? "[]") as string[];
    expect(all("HEALTHCHECK")[0]).toEndWith(`CMD ["${program}", "ready"]`);
  });

  test("is built only from the files that it copies", () => {
    const ignore = read(".dockerignore").split("\n");
    expect(ignore.find((line) => !line.startsWith("#"))).toBe("*");
    const sources = all("COPY")
      .filter((copy) => !copy.startsWith("--from"))
      .flatMap((copy) => copy.split(" ").slice(0, -1));
    const missing = sources.filter(
      (source) => !ignore.some((line) => line[0] === "!" && source.startsWith(line.slice(1))),
    );
    expect(missing).toEqual([]);
  });
});
