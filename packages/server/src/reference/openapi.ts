import { type Access, type ErrorCode, errorStatus, type Operation } from "@parley/protocol";
import manifest from "../../package.json" with { type: "json" };
import { LIMITS } from "../config/limits.ts";
import { ACTS_FOR } from "../security/service-keys.ts";
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
import {
  AGENTS_TOO,
  accessMeanings,
  errorMeanings,
  policyMeaning,
  resourceTag,
  resourceTitle,
  SENSITIVE,
} from "./prose.ts";
import { mapEntries, type Schema, type SchemaBook, schemaBook } from "./schemas.ts";

/** The HTTP side of the contract as an OpenAPI 3.1 document. */
export function openApi(): object {
  const book = schemaBook("#/components/schemas/", "draft-2020-12");
  const calls = allOperations.map((operation) => [
    `/api/${operation.name}`,
    { post: call(operation, book) },
  ]);
  const paths = { ...Object.fromEntries(calls), ...servicePaths() };
  return {
    openapi: "3.1.0",
    info: {
      title: "Parley",
      version: manifest.version,
      summary: "A chat service for people and AI agents.",
      description:
        "Every operation is `POST /api/<operation>`, with JSON in the request and in the response. The WebSocket has the same operations, except those for service keys, and all events: see `/asyncapi.json`. The reference for people is at `/docs`.",
      license: { name: manifest.license, identifier: manifest.license },
      contact: { name: "The operator of this server" },
    },
    servers: [{ url: "/" }],
    security: security.session,
    tags: [...byResource().keys(), "server"].map(resourceTag),
    paths,
    components: {
      securitySchemes: {
        accessToken: bearer,
        accessTokenInQuery: query,
        serviceKey,
        agentToken,
      },
      parameters: { ActsFor: actsFor },
      headers,
      responses: failureResponses(paths, book),
      schemas: book.shared,
    },
  };
}

/** The errors that a call with the documented method can answer. */
const answered = allErrors.filter((code) => code !== "method_not_allowed");

const bearer = {
  type: "http",
  scheme: "bearer",
  description:
    "The access token that signUp, signIn and finishOidcSignIn return, or a JWT of the OIDC issuer.",
};

const query = {
  type: "apiKey",
  name: "token",
  in: "query",
  description: "The same token, for the socket only: browsers cannot set its headers.",
};

const serviceKey = {
  type: "http",
  scheme: "bearer",
  description:
    "A service key, `pls_…`, for the backend of a product. Refused with 403 in a request that has an `Origin` header.",
};

const agentToken = {
  type: "http",
  scheme: "bearer",
  description: "A token of an external agent, `pla_…`, from createAgentToken.",
};

/** A parameter: generated clients would send the token in a further security scheme. */
const actsFor = {
  name: ACTS_FOR,
  in: "header",
  required: false,
  description:
    "With a service key only, and required with one: the person whom it acts for, by username, or as `id:` and an external id in UTF-8.",
  schema: { type: "string" },
  example: "id:customer-4711",
};

/** How operations of each access level are called. */
const security: Record<Access, object[]> = {
  public: [],
  session: [{ accessToken: [] }, { serviceKey: [] }],
  agent: [{ agentToken: [] }],
  service: [{ serviceKey: [] }],
  operator: [{ accessToken: [] }, { serviceKey: [] }],
};

const actsForParameter = { $ref: "#/components/parameters/ActsFor" };

const headers = {
  RequestId: {
    description: "Identifies the request in the server's log.",
    schema: { type: "string" },
  },
  RetryAfter: {
    description: "Seconds to wait before retrying.",
    schema: { type: "integer" },
  },
  Ignored: {
    description:
      "Names of fields of the request that the operation does not know, in lists such as `users.0.name`, and `limit` if it is above the server's `page_size`; comma-separated, at most 20.",
    schema: { type: "string" },
  },
  RateLimitPolicy: {
    description:
      "The rate that the call counts against: how many calls (`q`) may be made in how many seconds (`w`).",
    schema: { type: "string" },
  },
  RateLimit: {
    description:
      "How many calls are left (`r`), and the seconds until all of them are again (`t`).",
    schema: { type: "string" },
  },
};

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
const callDescription = ({ socket, access, agents, policy, sensitive }: Operation) =>
  [
    access === "service" ? "HTTP only." : `On the socket: \`${socket}\`.`,
    `Access: \`${access}\`. ${accessMeanings[access]}`,
    ...(agents ? [AGENTS_TOO] : []),
    ...(policy ? [policyMeaning(policy)] : []),
    ...(sensitive ? [SENSITIVE] : []),
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

/** The paths that are not operations. Only the socket needs a token. */
function servicePaths() {
  const get = (operationId: string, summary: string, responses: object, more: object = {}) => ({
    get: {
      operationId,
      summary,
      description: summary,
      tags: [resourceTitle("server")],
      security: [],
      // Every path refuses a Host header that is not a valid host.
      responses: { ...responses, 400: failed("bad_request") },
      ...more,
    },
  });
  const plain = (description: string, type: string) => ({ description, content: { [type]: {} } });
  return {
    "/api/ws": get("connect", "Upgrades to the WebSocket described in /asyncapi.json.", upgrade, {
      security: [{ accessToken: [] }, { accessTokenInQuery: [] }],
    }),
    "/api/limits": get("getLimits", "Returns the limits of this server.", {
      200: { description: "The limits by name.", content: limits() },
    }),
    "/hooks/{id}/{secret}": { post: hookPost },
    "/exports/{token}": { get: exportDownload },
    "/files/{id}/upload": { put: fileUpload },
    "/files/{id}/content": { get: fileDownload("downloadFile", "Returns the bytes of a file.") },
    "/files/{id}/preview": {
      get: fileDownload("downloadPreview", "Returns a small version of a picture."),
    },
    "/health": get("health", "Liveness check: answers while the process runs.", {
      200: { description: "The process runs.", content: json(liveness) },
    }),
    "/ready": get("ready", "Readiness check: whether the store and the bus can be reached.", {
      200: { description: "Both can be reached.", content: json(readiness) },
      503: failed("unavailable"),
    }),
    "/metrics": get("metrics", "Metrics for Prometheus.", {
      200: plain("Text exposition format.", "text/plain"),
    }),
    "/openapi.json": get("openApi", "This document.", {
      200: plain("OpenAPI 3.1.", "application/json"),
    }),
    "/asyncapi.json": get("asyncApi", "The WebSocket as an AsyncAPI document.", {
      200: plain("AsyncAPI 3.0.", "application/json"),
    }),
    "/docs": get("reference", "The reference for people.", {
      200: plain("One page without script.", "text/html"),
    }),
  };
}

const pathParameter = (name: string, description: string) => ({
  name,
  in: "path",
  required: true,
  description,
  schema: { type: "string" },
});

/** Where other programs post: the address that `createIncomingHook` returns. */
const hookPost = {
  operationId: "postToHook",
  summary: "Posts into a group with the payload of a Slack webhook.",
  description:
    "The address that `createIncomingHook` returns. The secret in it is the authorization. A form with the JSON in its field `payload` is accepted too.",
  tags: [resourceTitle("server")],
  security: [],
  parameters: [
    pathParameter("id", "The id of the hook."),
    pathParameter("secret", "The secret of the hook."),
  ],
  requestBody: {
    required: true,
    content: {
      ...json(
        {
          type: "object",
          properties: {
            text: { type: "string", description: "Text in Slack's mrkdwn." },
            blocks: { type: "array", items: { type: "object" } },
            attachments: { type: "array", items: { type: "object" } },
          },
        },
        { text: "*Deployed* <https://example.com/v2|v2>" },
      ),
      "application/x-www-form-urlencoded": {
        schema: { type: "object", properties: { payload: { type: "string" } } },
      },
    },
  },
  responses: {
    200: {
      description: "The message was posted.",
      content: { "text/plain": { schema: { type: "string", const: "ok" } } },
    },
    400: failed("bad_request"),
    403: failed("forbidden"),
    404: failed("not_found"),
    413: failed("payload_too_large"),
    429: failed("rate_limited"),
    500: failed("internal"),
    503: failed("unavailable"),
  },
};

/** Where people download their own data: the address that `exportMe` returns. */
const exportDownload = {
  operationId: "downloadExport",
  summary: "Downloads an archive of the data of a person.",
  description:
    "The address that `exportMe` returns. The token in it is the authorization, and expires.",
  tags: [resourceTitle("server")],
  security: [],
  parameters: [pathParameter("token", "The token of the link.")],
  responses: {
    200: {
      description: "A ZIP archive of JSON Lines.",
      content: { "application/zip": { schema: { type: "string", format: "binary" } } },
    },
    403: failed("suspended"),
    404: failed("not_found"),
    409: failed("conflict"),
    500: failed("internal"),
    503: failed("unavailable"),
  },
};

const linkParameters = [
  pathParameter("id", "The id of the file."),
  ...["expires", "signature"].map((name) => ({
    name,
    in: "query",
    required: true,
    description: "Part of the link.",
    schema: { type: "string" },
  })),
];
const bytes = { "application/octet-stream": { schema: { type: "string", format: "binary" } } };

const fileUpload = {
  operationId: "uploadFile",
  summary: "Takes the bytes of a file.",
  description:
    "The `upload_url` of `createUpload`. The link is the authorization, and expires. A file that is ready is returned as it is; one that broke off can be sent again.",
  tags: [resourceTitle("server")],
  security: [],
  parameters: linkParameters,
  requestBody: { required: true, content: bytes },
  responses: {
    200: {
      description: "The file is ready.",
      content: json({
        type: "object",
        required: ["ok", "result"],
        properties: { ok: { const: true }, result: { $ref: "#/components/schemas/File" } },
      }),
    },
    400: failed("bad_request"),
    403: failed("forbidden_or_suspended"),
    404: failed("not_found"),
    413: failed("payload_too_large"),
    415: failed("unsupported_media_type"),
    429: failed("rate_limited"),
    500: failed("internal"),
    503: failed("unavailable"),
  },
};

const fileDownload = (operationId: string, summary: string) => ({
  operationId,
  summary,
  description:
    "An address of `getFileLinks` or `getProfiles`. The link is the authorization, and expires. Ranges and conditional requests are supported.",
  tags: [resourceTitle("server")],
  security: [],
  parameters: linkParameters,
  responses: {
    200: { description: "The bytes, with the type of the file.", content: bytes },
    206: { description: "The part that `range` asks for.", content: bytes },
    304: { description: "The client has it: `if-none-match` names it." },
    403: failed("forbidden"),
    404: failed("not_found"),
    416: { description: "The file is shorter than the part that `range` asks for." },
    500: failed("internal"),
    503: failed("unavailable"),
  },
});

const liveness = {
  type: "object",
  properties: {
    ok: { const: true },
    version: { type: "string", description: "The version of the server." },
  },
  required: ["ok", "version"],
};

const readiness = {
  type: "object",
  properties: {
    ok: { const: true },
    failing: {
      type: "array",
      items: { type: "string" },
      description:
        "Background work of the store and the file storage that fails while calls are served.",
    },
  },
  required: ["ok"],
};

const upgrade = {
  101: { description: "Switched to the WebSocket. The first frame is `events.hello`." },
  400: failed("bad_request"),
  401: failed("unauthorized"),
  403: failed(nameOf(["forbidden", "suspended"])),
  429: failed("rate_limited"),
};

function limits() {
  const properties = mapEntries(LIMITS, (name, { meaning }) => [
    name,
    { type: "integer", minimum: 0, description: meaning },
  ]);
  const result = mapEntries(LIMITS, (name, each) => [name, each.default]);
  return json(success({ type: "object", properties }, false), { ok: true, result });
}
