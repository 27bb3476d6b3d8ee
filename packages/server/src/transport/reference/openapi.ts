import { type Access, type ErrorCode, errorStatus, type Operation } from "@parley/protocol";
import manifest from "../../../package.json" with { type: "json" };
import { LIMITS } from "../../config/limits.ts";
import { allOperations, byResource, httpErrors, httpFailure, success } from "./contract.ts";
import { describe } from "./examples.ts";
import skeleton from "./openapi.yaml";
import { errorMeanings, resourceTag, resourceTitle } from "./prose.ts";
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
const retryAfter = { "retry-after": { $ref: "#/components/headers/RetryAfter" } };

/** The responses that the paths refer to. */
function failureResponses(paths: object, book: SchemaBook) {
  const named = JSON.stringify(paths).matchAll(/#\/components\/responses\/(\w+)/g);
  const names = new Set([...named].map(([, name = ""]) => name));
  return Object.fromEntries([...names].map((name) => [name, failure(name, book)]));
}

/** The responses for these codes, by status. Codes that have the same one share a response. */
function failures(codes: readonly ErrorCode[]) {
  const byStatus = Map.groupBy(codes, (code) => errorStatus[code]);
  const place = "#/components/responses";
  return Object.fromEntries(
    [...byStatus].map(([status, each]) => [status, { $ref: `${place}/${each.join("_or_")}` }]),
  );
}

const json = (schema: Schema, example?: unknown) => ({
  "application/json": { schema, ...(example !== undefined && { example }) },
});

function call(operation: Operation, book: SchemaBook) {
  const described = describe(operation, book);
  const { input, output, sent, answer, tags } = described;
  const { name, summary, socket, access } = operation;
  const howToCall = access === "service" ? "HTTP only." : `On the socket: \`${socket}\`.`;
  return {
    operationId: name,
    summary,
    description: [howToCall, described.access, ...described.rules].join(" "),
    tags,
    ...securityOf(operation),
    ...(access === "session" && { parameters: [actsForParameter] }),
    requestBody: {
      // A missing body is an empty object.
      required: !described.takesNothing,
      content: json(input, sent),
    },
    responses: {
      200: {
        description: output ? "Success, with a `result`." : "Success.",
        headers: callHeaders,
        content: json(success(output, described.mayReturnNothing), answer),
      },
      ...failures(httpErrors(operation)),
    },
  };
}

/** Left out where it is the same as that of the document. */
function securityOf({ access, agents }: Operation) {
  if (agents) return { security: [...security[access], ...security.agent] };
  return access === "session" ? {} : { security: security[access] };
}

function failure(name: string, book: SchemaBook) {
  const codes = name.split("_or_") as [ErrorCode, ...ErrorCode[]];
  const [code] = codes;
  const { example } = errorMeanings[code];
  const waits = code === "rate_limited" || code === "unavailable";
  const parameters = waits && { parameters: { retry_after: 1 } };
  const error_code = errorStatus[code];
  const body = { ok: false, error_code, code, description: example, ...parameters };
  return {
    description: codes.map((each) => errorMeanings[each].meaning).join(" Or: "),
    headers: { "x-request-id": callHeaders["x-request-id"], ...(waits && retryAfter) },
    content: json(book.output(httpFailure), body),
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
