import { type EventContract, type Operation, RequestFrame } from "@parley/protocol";
import { historyId, ownSeq } from "@parley/protocol/text/fields";
import manifest from "../../../package.json" with { type: "json" };
import {
  allEvents,
  eventPlace,
  hasPlace,
  mayReturnNothing,
  resourceOf,
  socketFailure,
  socketOperations,
  success,
} from "./contract.ts";
import { describe, eventExample, frameExample } from "./examples.ts";
import { accessOf, resourceTag, resourceTitle } from "./prose.ts";
import {
  createSchemaBook,
  mapEntries,
  type Schema,
  type SchemaBook,
  socketParams,
} from "./schemas.ts";

/** The address of the service: its host, such as `chat.example.com`, and whether it uses TLS. */
export interface Address {
  host: string;
  secure: boolean;
}

/** The WebSocket side of the contract as an AsyncAPI 3.0 document, from the server's view. */
export function asyncApi({ host, secure }: Address): object {
  const book = createSchemaBook("#/components/schemas/", "draft-07");
  const events = allEvents.map(([name, event]) => [name, sending(name, event, book)] as const);
  const calls = socketOperations.map(
    (operation) => [operation.socket, receiving(operation, book)] as const,
  );
  const replies = [
    reply(DONE, "DoneReply", "Success without a result.", success(null, true), book, { ok: true }),
    reply(FAILED, "FailedReply", "The call failed.", book.output(socketFailure), book, {
      ok: false,
      error: { code: "not_found", message: "not found: message" },
    }),
  ];
  const described = [...events, ...calls].flatMap(([, { messages }]) => messages);
  const messages = Object.fromEntries([...described, ...replies].map((each) => [each.name, each]));
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
    servers: {
      here: { host, protocol: secure ? "wss" : "ws", security },
    },
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
    operations: Object.fromEntries(
      [...events, ...calls].map(([name, { operation }]) => [name, operation]),
    ),
    components: { messages, schemas: book.shared, securitySchemes },
  };
}

const eventsTag = { name: "Events", description: "Frames that the server sends." };

/** Names of the replies that all operations share. */
const DONE = "reply.done";
const FAILED = "reply.failed";

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
function sending(name: string, event: EventContract, book: SchemaBook) {
  const { params, delivery, carries, summary } = event;
  const payload = object({ method: { const: name }, params: book.output(params) });
  const { properties = {} } = payload;
  if (hasPlace(event)) properties.at = book.output(eventPlace);
  // Optional in counted events: a deletion for oneself alone has no place in the conversation.
  if (delivery === "standing") payload.required?.push("at");
  if (carries) properties[carries] = book.output(CARRIED[carries]);
  const schema = share(book, `${pascal(name.replace("events.", ""))}Event`, payload);
  return {
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
  const { name, socket, summary } = operation;
  const { input, output, sent, answer } = describe(operation, book);
  const params = share(book, `${pascal(name)}Params`, socketParams(input));
  const payload = object({ method: { enum: [socket, name] }, params });
  if (operation.input.safeParse({}).success) payload.required = ["method"];
  const call = share(book, `${pascal(name)}Call`, withId(payload, book));
  const messages = [message(socket, summary, call, sent && frameExample(operation, sent))];
  const result = `${socket}.result`;
  if (output) {
    const [as, meaning] = [`${pascal(name)}Reply`, `The reply to ${socket}.`];
    messages.push(reply(result, as, meaning, success(output, false), book, answer));
  }
  const replies = [
    ...(output ? [result] : []),
    ...(mayReturnNothing(operation) ? [DONE] : []),
    FAILED,
  ];
  return {
    messages,
    operation: {
      action: "receive",
      channel,
      summary,
      description: accessOf(operation),
      tags: [{ name: resourceTitle(resourceOf(operation)) }],
      messages: [channelMessage(socket)],
      reply: { channel, messages: replies.map(channelMessage) },
    },
  };
}

/** A reply, which names the fields of its call that have no effect. */
function reply(
  name: string,
  as: string,
  summary: string,
  { properties, ...body }: Schema,
  book: SchemaBook,
  example: object | undefined,
) {
  const schema = share(book, as, withId({ ...body, properties: { ...properties, ignored } }, book));
  return message(name, summary, schema, example && { ...example, id: 1 });
}

const ignored = {
  type: "array",
  items: { type: "string" },
  description:
    "Names of params that the operation does not know, in lists such as `grants.0.kind`, and `limit` if it is above the server's `page_size`. At most 20.",
};

/** Adds the optional `id` of a call, which its reply repeats. */
function withId(payload: Schema, book: SchemaBook): Schema {
  const { id } = book.input(RequestFrame).properties ?? {};
  return { ...payload, properties: { ...payload.properties, ...(id && { id }) } };
}

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
