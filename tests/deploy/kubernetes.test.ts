import { describe, expect, test } from "bun:test";
import { isPinned, read, secrets, unknown } from "@parley/testkit/deploy.ts";
import {
  documents,
  forgotten,
  installation,
  isWorkload,
  podsOf,
  typeErrors,
} from "@parley/testkit/kubernetes.ts";
import { startServer } from "@parley/testkit/server.ts";
import type { EnvVar } from "kubernetes-types/core/v1";
import { readConfig } from "../../packages/server/src/config/config.ts";

/** Where each installation keeps files; the base has none. */
const STORAGE: Record<string, "disk" | "s3" | undefined> = { example: "s3", trial: "disk" };

describe.each(["base", "example", "trial"])("Kubernetes, %s", (folder) => {
  const { manifests, config } = installation(folder);
  const pods = podsOf(manifests);
  const containers = pods.flatMap(({ spec }) => spec.containers);
  const named = (kind: string, name: string | undefined) =>
    manifests.some(({ kind: each, metadata }) => each === kind && metadata?.name === name);

  test("every manifest is valid", async () => {
    expect(await typeErrors(manifests)).toBe("");
  });

  test("every file is listed in the kustomization", () => {
    expect(forgotten(folder)).toEqual([]);
  });

  test.each(pods)("the pods of $name pass the restricted standard", ({ spec }) => {
    expect(spec).toMatchObject({
      automountServiceAccountToken: false,
      securityContext: { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } },
    });
    expect(spec.securityContext?.runAsUser).toBeGreaterThan(0);
    for (const { securityContext, resources, readinessProbe, image = "" } of spec.containers) {
      expect(securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
      });
      expect(resources).toMatchObject({ requests: {}, limits: {} });
      expect(Object.keys(resources?.limits ?? {})).toEqual(["cpu", "memory"]);
      expect(readinessProbe).toBeDefined();
      expect(isPinned(image)).toBe(true);
    }
  });

  test("every mounted volume exists", () => {
    for (const { spec } of pods) {
      const volumes = spec.volumes?.map(({ name }) => name) ?? [];
      const claims = manifests.flatMap((manifest) =>
        manifest.kind === "StatefulSet" ? (manifest.spec?.volumeClaimTemplates ?? []) : [],
      );
      for (const { persistentVolumeClaim: claim } of spec.volumes ?? []) {
        if (claim) expect(named("PersistentVolumeClaim", claim.claimName)).toBe(true);
      }
      const known = [...volumes, ...claims.map(({ metadata }) => metadata?.name)];
      for (const { volumeMounts = [] } of spec.containers) {
        for (const { name } of volumeMounts) expect(known).toContain(name);
      }
      for (const { configMap } of spec.volumes ?? []) {
        if (configMap) expect([...config.keys()]).toContain(configMap.name as string);
      }
    }
  });

  test("the example has every secret key that a pod uses", () => {
    const [secret] = documents<{ metadata: { name: string }; stringData: object }>(
      "example/secret.example.yaml",
    );
    const trial = read("deploy/kubernetes/trial/secrets.env.example").match(/^[A-Z_]+(?==)/gm);
    const offered = folder === "trial" ? trial : Object.keys(secret?.stringData ?? {});
    const asked = containers
      .flatMap(({ env = [] }) => env.map(secretOf))
      .filter((reference) => reference && !(folder === "trial" && reference.optional));
    expect(asked.length).toBeGreaterThan(0);
    for (const reference of asked) {
      expect(reference?.name).toBe(secret?.metadata.name as string);
      expect(offered).toContain(reference?.key as string);
    }
  });

  test("the settings of the nodes exist and are valid", () => {
    const [parley] = containers.filter(({ name }) => name === "parley");
    const [map = ""] = parley?.envFrom?.map(({ configMapRef }) => configMapRef?.name ?? "") ?? [];
    const variables = parley?.env ?? [];
    const parts = variables.flatMap(({ value = "" }) => referencesOf(value));
    const values: Record<string, string> = { ...config.get(map) };
    for (const variable of variables) values[variable.name] = expanded(variable, values);
    expect(unknown(Object.keys(values).filter((name) => !parts.includes(name)))).toEqual([]);
    const settings = readConfig(values);
    expect(settings.nats?.servers).toHaveLength(3);
    expect(settings.database).not.toBeNull();
    expect(settings.files?.kind).toBe(STORAGE[folder]);
    const mounted = parley?.volumeMounts?.map(({ mountPath }) => mountPath) ?? [];
    // Where uploads are received: the root file system is read-only.
    expect(mounted).toContain("/data");
    if (settings.files?.kind === "disk") expect(mounted).toContain(settings.files.folder);
  });

  test("variables refer only to variables before them", () => {
    for (const { env = [] } of containers) {
      env.forEach(({ value = "" }, index) => {
        const before = env.slice(0, index).map(({ name }) => name);
        for (const part of referencesOf(value)) expect(before).toContain(part);
      });
    }
  });

  test("NATS servers and nodes have the addresses of all NATS servers", () => {
    const [nats] = manifests.filter(isWorkload).filter(({ metadata }) => metadata?.name === "nats");
    const valueIn = (name: string) =>
      containers.flatMap(({ env = [] }) => env).find((each) => each.name === name)?.value ?? "";
    for (let index = 0; index < (nats?.spec?.replicas ?? 0); index++) {
      expect(valueIn("NATS_URL")).toContain(`@nats-${index}.nats:4222`);
      expect(valueIn("NATS_ROUTES")).toContain(`@nats-${index}.nats:6222`);
    }
    expect(nats?.spec?.replicas).toBe(3);
  });

  test("everything that manifests refer to exists", () => {
    const labels = manifests
      .filter(isWorkload)
      .map(({ spec }) => spec?.template.metadata?.labels ?? {});
    const selects = (selector: Record<string, string> = {}) =>
      labels.some((each) => Object.entries(selector).every(([key, value]) => each[key] === value));
    for (const manifest of manifests) {
      if (manifest.kind === "Service" && manifest.spec?.selector) {
        expect(selects(manifest.spec.selector)).toBe(true);
      }
      if (manifest.kind === "PodDisruptionBudget") {
        expect(selects(manifest.spec?.selector?.matchLabels)).toBe(true);
      }
      if (manifest.kind === "NetworkPolicy") {
        expect(selects(manifest.spec?.podSelector?.matchLabels)).toBe(true);
      }
      if (manifest.kind === "HorizontalPodAutoscaler") {
        const { kind = "", name } = manifest.spec?.scaleTargetRef ?? {};
        expect(named(kind, name)).toBe(true);
      }
      if (manifest.kind === "Ingress") {
        const paths = manifest.spec?.rules?.flatMap(({ http }) => http?.paths ?? []) ?? [];
        for (const { backend } of paths) {
          expect(named("Service", backend.service?.name)).toBe(true);
        }
      }
    }
  });
});

/** The value of a variable in a container. */
function expanded(variable: EnvVar, before: Record<string, string>): string {
  const key = secretOf(variable)?.key;
  if (key === undefined) {
    return (variable.value ?? "").replace(/\$\(([A-Z_]+)\)/g, (_, name) => before[name] ?? "");
  }
  const made: Record<string, string> = secrets;
  return key === "DATABASE_URL" ? "postgres://parley:secret@db:5432/parley" : (made[key] ?? "");
}

const secretOf = ({ valueFrom }: EnvVar) => valueFrom?.secretKeyRef;
const referencesOf = (value: string) =>
  [...value.matchAll(/\$\(([A-Z_]+)\)/g)].map(([, name = ""]) => name);

test("a misspelt field in a manifest is reported", async () => {
  const wrong = { apiVersion: "apps/v1", kind: "Deployment", spec: { replica: 3 } };
  expect(await typeErrors([wrong])).toContain("replica");
});

test("the paths of probes and scrapes exist", async () => {
  const { manifests } = installation("base");
  const [parley] = podsOf(manifests).flatMap(({ spec }) => spec.containers);
  const probes = [parley?.startupProbe, parley?.livenessProbe, parley?.readinessProbe];
  const paths = [
    ...probes.map((probe) => probe?.httpGet?.path),
    /health_uri (\S+)/.exec(read("deploy/Caddyfile"))?.[1],
  ];
  await using server = await startServer();
  for (const path of paths) {
    const { status } = await fetch(`${server.url}${path}`);
    expect({ path, status }).toEqual({ path, status: 200 });
  }
});
