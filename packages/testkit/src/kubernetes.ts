import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Deployment, StatefulSet } from "kubernetes-types/apps/v1";
import type { HorizontalPodAutoscaler } from "kubernetes-types/autoscaling/v2";
import type {
  Namespace,
  PersistentVolumeClaim,
  PodSpec,
  Secret,
  Service,
} from "kubernetes-types/core/v1";
import type { Ingress, NetworkPolicy } from "kubernetes-types/networking/v1";
import type { PodDisruptionBudget } from "kubernetes-types/policy/v1";

export type Workload = Deployment | StatefulSet;
export type Manifest =
  | Workload
  | HorizontalPodAutoscaler
  | Ingress
  | Namespace
  | NetworkPolicy
  | PersistentVolumeClaim
  | PodDisruptionBudget
  | Secret
  | Service;

const ROOT = join(import.meta.dir, "../../..");
const FOLDER = join(ROOT, "deploy/kubernetes");
const TYPES = dirname(Bun.resolveSync("kubernetes-types/package.json", import.meta.dir));

/** The YAML documents of a file. */
export const documents = <Document>(path: string): Document[] =>
  [Bun.YAML.parse(readFileSync(join(FOLDER, path), "utf8"))].flat() as Document[];

interface Kustomization {
  resources: string[];
  configMapGenerator?: { name: string; literals?: string[]; files?: string[] }[];
  secretGenerator?: { name: string; envs: string[] }[];
  patches?: { target: { kind: string; name: string }; patch: string }[];
}

interface PatchStep {
  op: "add" | "remove";
  path: string;
  value?: unknown;
}

/** The resources of a kustomization, including those of its bases. */
export interface Installation {
  manifests: Manifest[];
  /** The values of each configuration map by key; values from files are empty. */
  config: Map<string, Record<string, string>>;
}

export function installation(folder: string): Installation {
  const [kustomization] = documents<Kustomization>(join(folder, "kustomization.yaml"));
  if (!kustomization) throw new Error(`${folder} has no kustomization`);
  const whole: Installation = { manifests: [], config: new Map() };
  for (const resource of kustomization.resources) {
    if (resource.endsWith(".yaml")) {
      whole.manifests.push(...documents<Manifest>(join(folder, resource)));
      continue;
    }
    const base = installation(join(folder, resource));
    whole.manifests.push(...base.manifests);
    for (const [name, values] of base.config) whole.config.set(name, values);
  }
  for (const { name, literals = [], files = [] } of kustomization.configMapGenerator ?? []) {
    const values = literals.map((literal) => literal.split(/=(.*)/s).slice(0, 2));
    const contents = files.map((file) => [file, ""]);
    whole.config.set(name, {
      ...whole.config.get(name),
      ...Object.fromEntries([...values, ...contents]),
    });
  }
  for (const { target, patch } of kustomization.patches ?? []) {
    const patched = whole.manifests.find(
      ({ kind, metadata }) => kind === target.kind && metadata?.name === target.name,
    );
    if (!patched)
      throw new Error(`${folder} patches ${target.kind} ${target.name}, which is missing`);
    for (const step of Bun.YAML.parse(patch) as PatchStep[]) applyPatch(patched, step);
  }
  return whole;
}

/** Applies a step of a JSON patch, as far as the manifests use them. */
function applyPatch(manifest: object, { op, path, value }: PatchStep): void {
  const keys = path.split("/").slice(1);
  const last = keys.pop() ?? "";
  let parent = manifest as Record<string, unknown>;
  for (const key of keys) {
    if (!(key in parent)) throw new Error(`there is no ${path} to ${op}`);
    parent = parent[key] as Record<string, unknown>;
  }
  if (op === "remove") delete parent[last];
  else if (Array.isArray(parent) && last === "-") parent.push(value);
  else parent[last] = value;
}

/** Files of a folder that its kustomization does not list. */
export function forgotten(folder: string): string[] {
  const [{ resources } = { resources: [] }] = documents<Kustomization>(
    join(folder, "kustomization.yaml"),
  );
  const known = ["kustomization.yaml", ...resources];
  return readdirSync(join(FOLDER, folder)).filter(
    (file) => file.endsWith(".yaml") && !file.includes(".example.") && !known.includes(file),
  );
}

export const isWorkload = (manifest: Manifest): manifest is Workload =>
  manifest.kind === "Deployment" || manifest.kind === "StatefulSet";

export const podsOf = (manifests: readonly Manifest[]): { name: string; spec: PodSpec }[] =>
  manifests.filter(isWorkload).map(({ metadata, spec }) => {
    if (!metadata?.name || !spec?.template.spec) throw new Error("a workload without pods");
    return { name: metadata.name, spec: spec.template.spec };
  });

/**
 * Type errors of manifests, compiled as values of Kubernetes' own types: unknown fields, missing
 * fields and wrong types.
 */
export async function typeErrors(manifests: readonly object[]): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "parley-manifests-"));
  try {
    const file = join(folder, "manifests.ts");
    writeFileSync(file, manifests.map(asLiteral).join("\n"));
    const compiler = Bun.spawn(
      [
        process.execPath,
        join(ROOT, "node_modules/typescript/bin/tsc"),
        ...["--noEmit", "--strict", "--skipLibCheck", "--types", ""],
        ...["--module", "preserve", "--moduleResolution", "bundler", file],
      ],
      { cwd: folder, stdout: "pipe" },
    );
    const [errors, code] = await Promise.all([compiler.stdout.text(), compiler.exited]);
    return code === 0 ? "" : errors || `the compiler ended with ${code}`;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function asLiteral(manifest: object, index: number): string {
  const { apiVersion, kind } = manifest as { apiVersion: string; kind: string };
  const [group = "", version] = apiVersion.includes("/") ? apiVersion.split("/") : ["core", "v1"];
  const module = join(TYPES, group.split(".")[0] as string, version as string);
  const type = `import(${JSON.stringify(module)}).${kind}`;
  return `export const manifest${index}: ${type} = ${JSON.stringify(manifest, null, 2)};`;
}
