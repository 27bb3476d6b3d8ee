import { Client, type JsonSchemaValidator } from "@modelcontextprotocol/client";
import { z } from "zod";
import { VERSION } from "../../observe/version.ts";

const MAX_MESSAGE_CHARACTERS = 4096;
const MAX_SCHEMA_CHARACTERS = 32_768;

/** A question of a server to the person whom a call is made for. */
const Question = z.looseObject({
  mode: z.string().default("form"),
  message: z.string().max(MAX_MESSAGE_CHARACTERS),
  requestedSchema: z
    .record(z.string(), z.unknown())
    .refine((schema) => JSON.stringify(schema).length <= MAX_SCHEMA_CHARACTERS),
});

/** Asks a person by a form that a JSON Schema describes. The actions have the words of the protocol. */
export type Elicit = (request: {
  message: string;
  schema: Record<string, unknown>;
}) => Promise<{ action: "accept" | "decline" | "cancel"; content?: Record<string, unknown> }>;

/** The results of servers are not validated against their schemas: a schema can be made to take forever. */
const acceptEverything = {
  getValidator:
    <Value>(): JsonSchemaValidator<Value> =>
    (data) => ({ valid: true, data: data as Value, errorMessage: undefined }),
};

/**
 * The official client, for servers that nobody trusts. The schemas of the protocol are not used for what
 * can be large: they take seconds to refuse a megabyte of nonsense.
 */
export class McpClient extends Client {
  constructor(
    probeMs: number,
    { onListChanged, elicit }: { onListChanged(): void; elicit: Elicit },
  ) {
    super(
      { name: "parley", version: VERSION },
      {
        capabilities: { elicitation: { form: {} } },
        versionNegotiation: { mode: "auto", probe: { timeoutMs: probeMs } },
        jsonSchemaValidator: acceptEverything,
        listChanged: { tools: { autoRefresh: false, onChanged: onListChanged } },
      },
    );
    this.setRequestHandler("elicitation/create", { params: z.unknown() }, async (params) => {
      const asked = Question.safeParse(params);
      if (!asked.success || asked.data.mode !== "form") return { action: "decline" };
      const { message, requestedSchema: schema } = asked.data;
      const { action, content = {} } = await elicit({ message, schema });
      return action === "accept" ? { action, content } : { action };
    });
  }

  /** Handlers get requests as they are: `Question` validates them. */
  protected override _wrapHandler(...[, handler]: Parameters<Client["_wrapHandler"]>) {
    return handler;
  }
}
