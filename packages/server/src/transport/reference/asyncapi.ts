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
import { answerExample, eventExample, frameExample, inputExample } from "./examples.ts";
import { AGENTS_TOO, accessMeanings, resourceTag, resourceTitle } from "./prose.ts";
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
  const book = createSchemaBook(SCHEMAS, "draft-07");
  const messages = { ...eventMessages(book), ...callMessages(book), ...replyMessages(book) };
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
    operations: Object.fromEntries([
      ...allEvents.map(([name, event]) => [name, sending(name, event)]),
      ...socketOperations.map((operation) => [operation.socket, receiving(operation)]),
    ]),
    components: { messages, schemas: book.shared, securitySchemes },
  };
}

const SCHEMAS = "#/components/schemas/";
const eventsTag = { name: "Events", description: "Frames that the server sends." };

/** Names of the replies that all operations share. */
const done = "reply.done";
const failed = "reply.failed";
const resultOf = ({ socket }: Operation) => `${socket}.result`;

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

const sending = (name: string, { summary }: EventContract) => ({
  action: "send",
  channel,
  summary,
  description: summary,
  tags: [{ name: eventsTag.name }],
  messages: [channelMessage(name)],
});

const receiving = (operation: Operation) => ({
  action: "receive",
  channel,
  summary: operation.summary,
  description: `Access: \`${operation.access}\`. ${accessMeanings[operation.access]}${operation.agents ? ` ${AGENTS_TOO}` : ""}`,
  tags: [{ name: resourceTitle(resourceOf(operation)) }],
  messages: [channelMessage(operation.socket)],
  reply: { channel, messages: replyNames(operation).map(channelMessage) },
});

const replyNames = (operation: Operation) => [
  ...(operation.output ? [resultOf(operation)] : []),
  ...(mayReturnNothing(operation) ? [done] : []),
  failed,
];

/** Fields of frames of events, besides `at`. */
const CARRIED = { history_id: historyId, own_seq: ownSeq };

function eventMessages(book: SchemaBook): Record<string, object> {
  return Object.fromEntries(
    allEvents.map(([name, event]) => {
      const { params, delivery, carries, summary } = event;
      const payload = object({ method: { const: name }, params: book.output(params) });
      if (hasPlace(event)) {
        payload.properties = { ...payload.properties, at: book.output(eventPlace) };
      }
      // Optional in counted events: a deletion for oneself alone has no place in the conversation.
      if (delivery === "standing") payload.required?.push("at");
      if (carries) {
        payload.properties = { ...payload.properties, [carries]: book.output(CARRIED[carries]) };
      }
      const named = share(book, `${pascal(name.replace("events.", ""))}Event`, payload);
      return [name, message(name, summary, named, eventExample([name, event], book))];
    }),
  );
}

function callMessages(book: SchemaBook): Record<string, object> {
  return Object.fromEntries(
    socketOperations.map((operation) => {
      const { name, socket, summary } = operation;
      const input = book.input(operation.input);
      const schema = share(book, `${pascal(name)}Params`, socketParams(input));
      const payload = object({ method: { enum: [socket, name] }, params: schema });
      if (operation.input.safeParse({}).success) payload.required = ["method"];
      const named = share(book, `${pascal(name)}Call`, withId(payload, book));
      const params = inputExample(operation, input, book.shared);
      const example = params && frameExample(operation, params, 1);
      return [socket, message(socket, summary, named, example)];
    }),
  );
}

function replyMessages(book: SchemaBook): Record<string, object> {
  const reply = (name: string, as: string, summary: string, body: Schema, example?: object) => {
    const named = share(book, as, withId(withIgnored(body), book));
    return [name, message(name, summary, named, example && { ...example, id: 1 })] as const;
  };
  const results = socketOperations.flatMap((operation) => {
    if (!operation.output) return [];
    const result = book.output(operation.output);
    const example = answerExample(operation, result, book.shared);
    const summary = `The reply to ${operation.socket}.`;
    const as = `${pascal(operation.name)}Reply`;
    return [reply(resultOf(operation), as, summary, success(result, false), example)];
  });
  return Object.fromEntries([
    ...results,
    reply(done, "DoneReply", "Success without a result.", success(null, true), { ok: true }),
    reply(failed, "FailedReply", "The call failed.", book.output(socketFailure), {
      ok: false,
      error: { code: "not_found", message: "not found: message" },
    }),
  ]);
}

/** Adds the optional `id` of a call, which its reply repeats. */
function withId(payload: Schema, book: SchemaBook): Schema {
  const { id } = book.input(RequestFrame).properties ?? {};
  return { ...payload, properties: { ...payload.properties, ...(id && { id }) } };
}

const withIgnored = (payload: Schema): Schema => ({
  ...payload,
  properties: {
    ...payload.properties,
    ignored: {
      type: "array",
      items: { type: "string" },
      description:
        "Names of params that the operation does not know, in lists such as `grants.0.kind`, and `limit` if it is above the server's `page_size`. At most 20.",
    },
  },
});

/** Adds a schema under a name, which code generators use for its type. */
function share({ shared }: SchemaBook, name: string, schema: Schema): Schema {
  shared[name] = { title: name, ...schema };
  return { $ref: `${SCHEMAS}${name}` };
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
