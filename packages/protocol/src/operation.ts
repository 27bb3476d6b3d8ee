import { z } from "zod";
import type { ErrorCode } from "./errors.ts";
import type { Policy } from "./records/policies.ts";
import type { Throttled, ThrottleName } from "./throttles.ts";

/** Who may call an operation. The reference explains each level. */
export const accessLevels = ["public", "session", "agent", "service", "operator"] as const;
export type Access = (typeof accessLevels)[number];

/** The field of a person's policy that can forbid an operation. */
export interface Governed {
  readonly field: keyof Policy;
  /** Only calls with this field of the input are governed. Null: all of them. */
  readonly input: string | null;
}

/** What a call costs, in units of which a plain call costs one. */
export interface Cost {
  readonly call: number;
  /** For each entry of these lists and objects of the input. */
  readonly each?: Readonly<Record<string, number>>;
}

/** One operation of the service, declared once: transports, SDK and reference are derived from it. */
export interface Operation<
  Name extends string = string,
  Input extends z.ZodType = z.ZodType,
  Output extends z.ZodType | null = z.ZodType | null,
  Level extends Access = Access,
  Agents extends boolean = boolean,
> {
  /** Callable as `POST /api/<name>`, and by this name on the socket too. */
  readonly name: Name;
  /** The dotted name on the socket. */
  readonly socket: string;
  /** One sentence, shown in the reference and in the OpenAPI and AsyncAPI documents. */
  readonly summary: string;
  readonly input: Input;
  /** Shape of `result`; null when success is a bare `{ "ok": true }`. */
  readonly output: Output;
  /** The codes that this operation answers, besides those that `declaredErrors` adds. */
  readonly errors: readonly ErrorCode[];
  /**
   * - `public`: anybody, without a token.
   * - `session`: a person, or a service key that acts for one.
   * - `agent`: a program with a token of an external agent.
   * - `service`: a service key that acts for nobody. HTTP only.
   * - `operator`: an operator, or a service key.
   */
  readonly access: Level;
  /** Whether external agents may call it too, in the conversations that they take part in. */
  readonly agents: Agents;
  /**
   * What the policy of the caller, or of the owner of the calling agent, must allow. Fields that are
   * true or false are checked before the handler runs; of the others, handlers decide by the input.
   */
  readonly policy: Governed | null;
  /**
   * Whether people must have signed in, or confirmed their password, in the last `confirm_minutes`: what
   * it changes outlives the session, or leaves the service, so that a stolen session must not suffice.
   */
  readonly sensitive: boolean;
  /** The rate limit that its calls count against. */
  readonly rate: "messages" | "operations" | "searches";
  /** What it counts against besides that rate. */
  readonly throttles: readonly Throttled[];
  /** What a call costs the account that makes it, besides the bytes of its request and answer. */
  readonly cost: Cost;
}

/** Errors that every operation may answer. */
export const commonErrors = [
  "bad_request",
  "rate_limited",
  "internal",
  "unavailable",
] as const satisfies ErrorCode[];

/** Codes that every operation may answer over HTTP, for the body of the request. */
export const bodyErrors = [
  "payload_too_large",
  "unsupported_media_type",
] as const satisfies ErrorCode[];

/** Codes that every operation that needs a token may answer. */
export const tokenErrors = [
  "unauthorized",
  "forbidden",
  "suspended",
] as const satisfies ErrorCode[];

/** Every code that an operation may answer. */
export const declaredErrors = ({ access, errors }: Operation): readonly ErrorCode[] => [
  ...commonErrors,
  ...bodyErrors,
  ...(access === "public" ? [] : tokenErrors),
  ...errors,
];

type Declaration<
  Name extends string,
  Input,
  Output,
  Level extends Access,
  Agents extends boolean,
> = {
  name: Name;
  socket: string;
  summary: string;
  input?: Input;
  output?: Output;
  errors?: readonly ErrorCode[];
  /** Default: `session`. */
  access?: Level;
  /** Default: false. */
  agents?: Agents;
  /** A field of the policy, or one that governs only calls with a field of the input. */
  policy?: keyof Policy | { field: keyof Policy; input: string };
  /** Default: false. */
  sensitive?: boolean;
  rate?: "messages" | "searches";
  /** Throttles that each call counts against, or those that its handler takes with what counts. */
  throttles?: readonly (ThrottleName | { name: ThrottleName; of: string })[];
  /** Default: that of a plain call. */
  cost?: Cost;
};

const nothing = z.object({});

export function operation<
  const Name extends string,
  Input extends z.ZodType = typeof nothing,
  Output extends z.ZodType | null = null,
  const Level extends Access = "session",
  const Agents extends boolean = false,
>(
  declaration: Declaration<Name, Input, Output, Level, Agents>,
): Operation<Name, Input, Output, Level, Agents> {
  const { policy = null, sensitive = false, errors = [], throttles = [] } = declaration;
  const implied: ErrorCode[] = [
    ...(policy === null ? [] : (["forbidden"] as const)),
    ...(sensitive ? (["confirmation_required"] as const) : []),
  ];
  return {
    rate: "operations",
    cost: { call: 1 },
    ...declaration,
    sensitive,
    throttles: throttles.map((each) =>
      typeof each === "string" ? { name: each, of: null } : each,
    ),
    errors: [...new Set([...implied, ...errors])],
    policy: typeof policy === "string" ? { field: policy, input: null } : policy,
    access: (declaration.access ?? "session") as Level,
    agents: (declaration.agents ?? false) as Agents,
    input: (declaration.input ?? nothing) as Input,
    output: (declaration.output ?? null) as Output,
  };
}

/** The result of an operation that returns a list in pages. */
export const page = <Item extends z.ZodType>(item: Item) =>
  z.object({ items: z.array(item), next_cursor: z.string().nullable() });

export const cursor = z.string().max(512).optional();
export const limit = z.int().min(1).optional().meta({
  description:
    "Default 50, at most the server's `page_size` (100 by default). A larger value is reduced to it. A page of long items has fewer: at most `page_bytes`.",
});

/** An object with at most one of these fields, also in its JSON Schema. */
export function exclusive<Shape extends z.ZodRawShape>(
  object: z.ZodObject<Shape>,
  ...names: [keyof Shape & string, ...(keyof Shape & string)[]]
): z.ZodObject<Shape> {
  const given = (value: object) => names.filter((name) => Reflect.get(value, name) !== undefined);
  const pairs = names.flatMap((one, place) => names.slice(place + 1).map((other) => [one, other]));
  const both = pairs.map((pair) => allOf(...pair));
  return object
    .superRefine((value, context) => {
      const [first, ...others] = given(value);
      const message = `cannot be given together with ${first}`;
      for (const other of others) context.addIssue({ code: "custom", message, path: [other] });
    })
    .meta({ not: both.length === 1 ? both[0] : { anyOf: both } });
}

/** The JSON Schema of an object that has all of these fields. Linters want them to be defined beside it. */
export const allOf = (...names: string[]) => ({
  required: names,
  properties: Object.fromEntries(names.map((name) => [name, {}])),
});

/** An object with exactly one of two fields, also in its JSON Schema. */
export const exactlyOne = <Shape extends z.ZodRawShape>(
  object: z.ZodObject<Shape>,
  one: keyof Shape & string,
  other: keyof Shape & string,
): z.ZodObject<Shape> =>
  exclusive(object, one, other)
    .refine((value) => [one, other].some((name) => Reflect.get(value, name) !== undefined), {
      message: `is required, or ${other}`,
      path: [one],
    })
    .meta({ anyOf: [{ required: [one] }, { required: [other] }] });
