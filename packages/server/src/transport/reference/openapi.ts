import { type Access, type ErrorCode, errorStatus, type Operation } from "@parley/protocol";
import manifest from "../../../package.json" with { type: "json" };
import { LIMITS } from "../../config/limits.ts";
import {
  allErrors,
  allOperations,
  byResource,
  httpErrors,
  httpFailure,
  mayReturnNothing,
  resourceOf,
  success,
} from "./contract.ts";
import { answerExample, inputExample } from "./examples.ts";
import skeleton from "./openapi.yaml";
import {
  AGENTS_TOO,
  accessMeanings,
  errorMeanings,
  policyMeaning,
  resourceTag,
  resourceTitle,
  SENSITIVE,
  throttleMeaning,
} from "./prose.ts";
import { createSchemaBook, mapEntries, type Schema, type SchemaBook } from "./schemas.ts";

/** The HTTP side of the contract as an OpenAPI 3.1 document. */
export function openApi(): object {
  const { info, paths: others, components, ...fixed } = skeleton as Skeleton;
  const book = createSchemaBook("#/components/schemas/", "draft-2020-12");
  const calls = allOperations.map((operation) => [
    `/api/${operation.name}`,
    { post: call(operation, book) },
  ]);
  const paths = { ...Object.fromEntries(calls), ...mapEntries(others, completed) };
  paths["/api/limits"].get.responses[200].content = limits();
  return {
    ...fixed,
    info: {
      ...info,
      version: manifest.version,
      license: { name: manifest.license, identifier: manifest.license },
    },
    security: security.session,
    tags: [...byResource().keys(), "server"].map(resourceTag),
    paths,
    components: {
      ...components,
      responses: failureResponses(paths, book),
      schemas: book.shared,
    },
  };
}

interface Skeleton {
  readonly info: object;
  readonly paths: Record<string, Record<string, { readonly summary: string }>>;
  readonly components: object;
}

/** A path that is not an operation. Only the socket needs a token. */
const completed = (path: string, methods: Skeleton["paths"][string]): [string, object] => [
  path,
  mapEntries(methods, (method, each) => [
    method,
    { description: each.summary, tags: [resourceTitle("server")], security: [], ...each },
  ]),
];

/** The errors that a call with the documented method can answer. */
const answered = allErrors.filter((code) => code !== "method_not_allowed");

/** How operations of each access level are called. */
const security: Record<Access, object[]> = {
  public: [],
  session: [{ accessToken: [] }, { serviceKey: [] }],
  agent: [{ agentToken: [] }],
  service: [{ serviceKey: [] }],
  operator: [{ accessToken: [] }, { serviceKey: [] }],
};

const actsForParameter = { $ref: "#/components/parameters/ActsFor" };

const callHeaders = {
  "x-request-id": { $ref: "#/components/headers/RequestId" },
  "parley-ignored": { $ref: "#/components/headers/Ignored" },
  "ratelimit-policy": { $ref: "#/components/headers/RateLimitPolicy" },
  ratelimit: { $ref: "#/components/headers/RateLimit" },
};
const requestId = { "x-request-id": callHeaders["x-request-id"] };
const retryAfter = { "retry-after": { $ref: "#/components/headers/RetryAfter" } };

const failed = (name: string) => ({ $ref: `#/components/responses/${name}` });

/** Codes that have the same status. An operation that answers several has one response for them. */
const sharedStatuses: readonly (readonly [ErrorCode, ...ErrorCode[]])[] = [
  ["forbidden", "suspended"],
  ["forbidden", "confirmation_required", "suspended"],
  ["unauthorized", "second_factor_required"],
];
const nameOf = (codes: readonly ErrorCode[]) => codes.join("_or_");

/** The responses that the paths refer to. Some codes are only answered together with others. */
function failureResponses(paths: object, book: SchemaBook) {
  const referring = JSON.stringify(paths);
  const single = answered.map((code): readonly [ErrorCode] => [code]);
  const used = [...single, ...sharedStatuses].filter((codes) =>
    referring.includes(JSON.stringify(failed(nameOf(codes)))),
  );
  return Object.fromEntries(used.map((codes) => [nameOf(codes), failure(codes, book)]));
}

/** The responses for these codes, by status. */
function failures(codes: readonly ErrorCode[]) {
  const one = codes.map((code) => [errorStatus[code], failed(code)] as const);
  const several = sharedStatuses
    .filter((shared) => shared.every((code) => codes.includes(code)))
    .map((shared) => [errorStatus[shared[0]], failed(nameOf(shared))] as const);
  return Object.fromEntries([...one, ...several]);
}

const json = (schema: Schema, example?: unknown) => ({
  "application/json": { schema, ...(example !== undefined && { example }) },
});

function call(operation: Operation, book: SchemaBook) {
  return {
    operationId: operation.name,
    summary: operation.summary,
    description: callDescription(operation),
    tags: [resourceTitle(resourceOf(operation))],
    ...securityOf(operation),
    ...(operation.access === "session" && { parameters: [actsForParameter] }),
    requestBody: requestBody(operation, book),
    responses: {
      200: answer(operation, book),
      ...failures(httpErrors(operation)),
    },
  };
}

/** Left out where it is the same as that of the document. */
function securityOf({ access, agents }: Operation) {
  if (agents) return { security: [...security[access], ...security.agent] };
  return access === "session" ? {} : { security: security[access] };
}

/** How the operation is called on the socket, and by whom. */
const callDescription = ({ socket, access, agents, policy, sensitive, throttles }: Operation) =>
  [
    access === "service" ? "HTTP only." : `On the socket: \`${socket}\`.`,
    `Access: \`${access}\`. ${accessMeanings[access]}`,
    ...(agents ? [AGENTS_TOO] : []),
    ...(policy ? [policyMeaning(policy)] : []),
    ...(sensitive ? [SENSITIVE] : []),
    ...throttles.map(throttleMeaning),
  ].join(" ");

function requestBody(operation: Operation, book: SchemaBook) {
  const schema = book.input(operation.input);
  return {
    // A missing body is an empty object.
    required: !operation.input.safeParse({}).success,
    content: json(schema, inputExample(operation, schema, book.shared)),
  };
}

function answer(operation: Operation, book: SchemaBook) {
  const result = operation.output && book.output(operation.output);
  const schema = success(result, mayReturnNothing(operation));
  return {
    description: result ? "Success, with a `result`." : "Success.",
    headers: callHeaders,
    content: json(schema, answerExample(operation, result, book.shared)),
  };
}

function failure(codes: readonly [ErrorCode, ...ErrorCode[]], book: SchemaBook) {
  const [code] = codes;
  const { example } = errorMeanings[code];
  const meaning = codes.map((each) => errorMeanings[each].meaning).join(" Or: ");
  const body = { ok: false, error_code: errorStatus[code], code, description: example };
  const waits = code === "rate_limited" || code === "unavailable";
  const parameters = { retry_after: 1 };
  return {
    description: meaning,
    headers: { ...requestId, ...(waits && retryAfter) },
    content: json(book.output(httpFailure), waits ? { ...body, parameters } : body),
  };
}

function limits() {
  const properties = mapEntries(LIMITS, (name, { meaning }) => [
    name,
    { type: "integer", minimum: 0, description: meaning },
  ]);
  const result = mapEntries(LIMITS, (name, each) => [name, each.default]);
  return json(success({ type: "object", properties }, false), { ok: true, result });
}
