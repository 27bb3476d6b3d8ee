import { type Operation, RequestFrame } from "@parley/protocol";
import { historyId, ownSeq } from "@parley/protocol/text/fields";
import manifest from "../../../package.json" with { type: "json" };
import {
  allEvents,
  eventPlace,
  hasPlace,
  type NamedEvent,
  resourceOf,
  socketFailure,
  socketOperations,
  success,
} from "./contract.ts";
import { describe, eventExample } from "./examples.ts";
import { resourceTag } from "./prose.ts";
import {
  createSchemaBook,
  mapEntries,
  type Schema,
  type SchemaBook,
  socketParams,
} from "./schemas.ts";

/** The WebSocket side of the contract as an AsyncAPI 3.0 document, from the server's view. */
export function asyncApi(host: string, isSecure: boolean): object {
  const book = createSchemaBook("#/components/schemas/", "draft-07");
  const described = [
    ...allEvents.map((event) => sending(event, book)),
    ...socketOperations.map((operation) => receiving(operation, book)),
  ];
  const replies = [doneReply(book), failedReply(book)];
  const named = [...described.flatMap((each) => each.messages), ...replies];
  const messages = Object.fromEntries(named.map((each) => [each.name, each]));
  return {
    asyncapi: "3.0.0",
    info: {
      title: "Parley",
      version: manifest.version,
      description:
        "The WebSocket of a chat service for people and AI agents. It carries all events, and every operation except those for service keys can be called on it.",
      license: { name: manifest.license },
      contact: { name: "The operator of this server" },
      tags: [eventsTag, ...[...new Set(socketOperations.map(resourceOf))].map(resourceTag)],
    },
    defaultContentType: "application/json",
    servers: { here: { host, protocol: isSecure ? "wss" : "ws", security } },
    channels: {
      socket: {
        address: "/api/ws",
        title: "The socket",
        description:
          "The token is the second subprotocol, after `parley`, or the parameter `token` of the address, or a bearer token. Every frame is one JSON object. A reply has the `id` of its call. Calls without an `id` are answered in the order in which they were sent.",
        messages: mapEntries(messages, (name) => [name, ref("components", "messages", name)]),
        bindings: { ws: { method: "GET", query: tokenQuery } },
      },
    },
    operations: Object.fromEntries(described.map(({ name, operation }) => [name, operation])),
    components: { messages, schemas: book.shared, securitySchemes },
  };
}

const eventsTag = { name: "Events", description: "Frames that the server sends." };

const ref = (...path: string[]) => ({ $ref: `#/${path.join("/")}` });
const channel = ref("channels", "socket");
const channelMessage = (name: string) => ref("channels", "socket", "messages", name);

const securitySchemes = {
  token: { type: "httpApiKey", name: "token", in: "query", description: "The access token." },
  bearer: { type: "http", scheme: "bearer", description: "The same token in the header." },
};
const security = Object.keys(securitySchemes).map((name) =>
  ref("components", "securitySchemes", name),
);

const tokenQuery = {
  type: "object",
  properties: {
    token: {
      type: "string",
      description:
        "The access token. A missing or invalid one is answered with HTTP 401 before the upgrade.",
    },
  },
};

/** The event that the server sends, and its message. */
function sending([name, event]: NamedEvent, book: SchemaBook) {
  const { params, delivery, carries, summary } = event;
  const payload = object({ method: { const: name }, params: book.output(params) });
  const { properties = {} } = payload;
  if (hasPlace(event)) properties.at = book.output(eventPlace);
  // Optional in counted events: a deletion for oneself alone has no place in the conversation.
  if (delivery === "standing") payload.required?.push("at");
  if (carries) properties[carries] = book.output(CARRIED[carries]);
  const schema = share(book, `${pascal(name.replace("events.", ""))}Event`, payload);
  return {
    name,
    messages: [message(name, summary, schema, eventExample([name, event], book))],
    operation: {
      action: "send",
      channel,
      summary,
      description: summary,
      tags: [{ name: eventsTag.name }],
      messages: [channelMessage(name)],
    },
  };
}

/** Fields of frames of events, besides `at`. */
const CARRIED = { history_id: historyId, own_seq: ownSeq };

/** The operation that the server handles, and the messages of its call and its result. */
function receiving(operation: Operation, book: SchemaBook) {
  const { name: method, socket: name, summary } = operation;
  const { input, output, ...described } = describe(operation, book);
  const as = pascal(method);
  const params = share(book, `${as}Params`, socketParams(input));
  const payload = object({ method: { enum: [name, method] }, params });
  if (described.takesNothing) payload.required = ["method"];
  const call = share(book, `${as}Call`, withId(payload));
  const result =
    output &&
    message(
      `${name}.result`,
      `The reply to ${name}.`,
      share(book, `${as}Reply`, replyFrame(success(output, false))),
      described.answer && { ...described.answer, id: 1 },
    );
  const replies = [
    ...(result ? [result.name] : []),
    ...(described.mayReturnNothing ? [DONE] : []),
    FAILED,
  ];
  return {
    name,
    messages: [message(name, summary, call, described.frame), ...(result ? [result] : [])],
    operation: {
      action: "receive",
      channel,
      summary,
      description: described.access,
      tags: described.tags.map((tag) => ({ name: tag })),
      messages: [channelMessage(name)],
      reply: { channel, messages: replies.map(channelMessage) },
    },
  };
}

/** Names of the replies that all operations share. */
const DONE = "reply.done";
const FAILED = "reply.failed";

function doneReply(book: SchemaBook) {
  const schema = share(book, "DoneReply", replyFrame(success(null, true)));
  return message(DONE, "Success without a result.", schema, { ok: true, id: 1 });
}

function failedReply(book: SchemaBook) {
  const schema = share(book, "FailedReply", replyFrame(book.output(socketFailure)));
  const error = { code: "not_found", message: "not found: message" };
  return message(FAILED, "The call failed.", schema, { ok: false, error, id: 1 });
}

/** Replies name the fields of their call that have no effect. */
const replyFrame = ({ properties, ...body }: Schema): Schema =>
  withId({ ...body, properties: { ...properties, ignored } });

const ignored = {
  type: "array",
  items: { type: "string" },
  description:
    "Names of params that the operation does not know, in lists such as `grants.0.kind`, and `limit` if it is above the server's `page_size`. At most 20.",
};

const { id } = createSchemaBook("", "draft-07").input(RequestFrame).properties ?? {};

/** Adds the optional `id` of a call, which its reply repeats. */
const withId = (payload: Schema): Schema => ({
  ...payload,
  properties: { ...payload.properties, ...(id && { id }) },
});

/** Adds a schema under a name, which code generators use for its type. */
function share({ shared }: SchemaBook, name: string, schema: Schema): Schema {
  shared[name] = { title: name, ...schema };
  return ref("components", "schemas", name);
}

const pascal = (name: string) => name.charAt(0).toUpperCase() + name.slice(1);

const message = (name: string, summary: string, payload: Schema, example?: unknown) => ({
  name,
  title: name,
  summary,
  payload,
  ...(!name.startsWith("events.") && { correlationId: { location: "$message.payload#/id" } }),
  ...(example !== undefined && { examples: [{ payload: example }] }),
});

const object = (properties: Record<string, Schema>): Schema => ({
  type: "object",
  properties,
  required: Object.keys(properties),
});
