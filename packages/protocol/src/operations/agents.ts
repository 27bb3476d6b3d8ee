import { z } from "zod";
import { exactlyOne, operation } from "../operation.ts";
import { AgentLimits, AgentModel, AgentProfile, KeyTest, ToolGrant, UsageRow } from "../records.ts";
import {
  agentName,
  anyText,
  displayName,
  line,
  text,
  timestamp,
  username,
  uuid,
} from "../text/fields.ts";

const provider = text(1, 32).meta({
  description: "The identifier of the provider, such as `claude`.",
});
const agentUsername = username.meta({ description: "The agent's username, `<owner>:<name>`." });

/** One of the caller's agents, by one of two names. */
const agent = {
  provider: provider.optional().meta({
    description:
      "The identifier of a provider, such as `claude`: its default agent. Either this or `agent_username`.",
  }),
  agent_username: username.optional(),
};
const namesAgent = <Shape extends z.ZodRawShape>(object: z.ZodObject<Shape & typeof agent>) =>
  exactlyOne(object, "provider", "agent_username");

const profile = {
  display_name: displayName.optional(),
  model: line(1, 128).nullable().optional().meta({
    description:
      "The model to ask with the owner's key. Null: the provider's default model, which the operator's key always asks.",
  }),
  instructions: text(0, 8000)
    .nullable()
    .optional()
    .meta({ description: "What the model is told in addition. Null: nothing." }),
};
const apiKey = anyText
  .transform((key) => key.trim())
  .pipe(
    z
      .string()
      .min(1, "must not be empty")
      .max(1024, "must have at most 1024 characters")
      .regex(/^[\x21-\x7e]*$/, "must be one line of printable ASCII characters"),
  )
  .meta({ minLength: 1, maxLength: 1024 });
const optionalLimit = z.int().min(0).nullable().optional();
/** The description of a limit, as its record has it. */
const like = (limit: keyof AgentLimits) => ({
  description: AgentLimits.shape[limit].description ?? "",
});

export const getMyAgents = operation({
  name: "getMyAgents",
  socket: "agents.list",
  summary: "Lists the caller's agents.",
  cost: { call: 5 },
  output: z.object({ items: z.array(AgentProfile) }),
});

export const createAgent = operation({
  name: "createAgent",
  socket: "agents.create",
  throttles: ["account_creations"],
  policy: "agents",
  summary: "Creates an agent of the caller, beside the default ones; at most 20.",
  input: z.object({
    name: agentName.meta({
      description:
        "The part of its username after the colon: 2 to 32 characters, a-z, 0-9, _ and -, beginning with a letter. It cannot be changed or used again.",
    }),
    kind: AgentProfile.shape.kind,
    provider: provider.optional().meta({
      description: "Required for a model; an external agent has none.",
    }),
    ...profile,
    display_name: displayName
      .optional()
      .meta({ description: "Default: `<owner>'s <name>`, with the owner's display name." }),
  }),
  output: AgentProfile,
  errors: ["conflict"],
});

export const updateAgent = operation({
  name: "updateAgent",
  socket: "agents.update",
  policy: "agents",
  summary:
    "Changes the display name, model, instructions or provider of one of the caller's agents.",
  input: z.object({
    agent_username: agentUsername,
    ...profile,
    provider: provider.optional().meta({
      description:
        "Another provider. The model is then that provider's default, unless one is given. Default agents keep theirs (409).",
    }),
  }),
  output: AgentProfile,
  errors: ["forbidden", "not_found", "conflict"],
});

export const deleteAgent = operation({
  name: "deleteAgent",
  socket: "agents.delete",
  summary:
    "Deletes an agent that the caller created: it stops, leaves its groups, and its direct conversations are closed.",
  input: z.object({ agent_username: agentUsername }),
  errors: ["forbidden", "not_found", "conflict"],
});

export const setAgentKey = operation({
  name: "setAgentKey",
  socket: "agents.set_key",
  sensitive: true,
  policy: "agents",
  summary: "Stores or replaces the caller's API key for a provider; the key is never returned.",
  input: namesAgent(z.object({ ...agent, api_key: apiKey })),
  output: z.object({
    provider: z.string(),
    key_tail: z.string(),
  }),
  errors: ["forbidden", "not_found"],
});

export const removeAgentKey = operation({
  name: "removeAgentKey",
  socket: "agents.remove_key",
  summary: "Deletes the caller's API key for a provider.",
  input: namesAgent(z.object(agent)),
  errors: ["forbidden", "not_found"],
});

export const testAgentKey = operation({
  name: "testAgentKey",
  socket: "agents.test_key",
  throttles: ["key_tests"],
  policy: "agents",
  summary:
    "Tests an API key with one small call to the provider: the one the agent uses, or one that is not stored.",
  input: namesAgent(
    z.object({
      ...agent,
      api_key: apiKey.optional().meta({
        description:
          "The key to test; it is not stored. Default: the stored key, or the operator's if there is none.",
      }),
    }),
  ),
  output: KeyTest,
  errors: ["forbidden", "not_found"],
});

export const getAgentModels = operation({
  name: "getAgentModels",
  socket: "agents.models",
  throttles: [{ name: "key_tests", of: "A list that is fetched from the provider" }],
  summary: "Lists the models that one of the caller's agents can be given.",
  input: namesAgent(z.object(agent)),
  output: z.object({
    items: z.array(AgentModel).meta({ description: "Suggestions: any other name can be set too." }),
    from: z.enum(["provider", "configuration"]).meta({
      description:
        "`provider`: its own list, for the caller's key, kept for some minutes. `configuration`: the configured model alone, because there is no key, the operator's key is used, or the provider has not answered with a list.",
    }),
  }),
  errors: ["forbidden", "not_found"],
});

export const setAgentProfile = operation({
  name: "setAgentProfile",
  socket: "agents.set_profile",
  policy: "agents",
  summary: "Changes the display name, model or instructions of one of the caller's agents.",
  input: namesAgent(z.object({ ...agent, ...profile })),
  output: AgentProfile,
  errors: ["forbidden", "not_found"],
});

export const setAgentLimits = operation({
  name: "setAgentLimits",
  socket: "agents.set_limits",
  policy: "agents",
  summary:
    "Sets who may use one of the caller's agents at the caller's expense, and how much; null removes a limit.",
  input: namesAgent(
    z.object({
      ...agent,
      spenders: z.enum(["owner", "participants"]).optional().meta(like("spenders")),
      daily_tokens: optionalLimit.meta(like("daily_tokens")),
      chat_daily_tokens: optionalLimit.meta(like("chat_daily_tokens")),
      turns_per_minute: optionalLimit.meta(like("turns_per_minute")),
      waiting_turns: z.int().min(1).max(100).optional().meta(like("waiting_turns")),
    }),
  ),
  output: AgentLimits,
  errors: ["forbidden", "not_found"],
});

export const setAgentTools = operation({
  name: "setAgentTools",
  socket: "agents.set_tools",
  sensitive: true,
  policy: "agents",
  summary: "Replaces what one of the caller's agents may use of the tools of tool servers.",
  cost: { call: 5, each: { grants: 0.2 } },
  input: z.object({
    agent_username: username,
    grants: z
      .array(
        z.object({
          server_id: uuid,
          tool: text(1, 128),
          policy: ToolGrant.shape.policy,
          changed: z.boolean().optional().meta({
            description:
              "If given, as the agent's profile has it, an earlier grant stays one for the tool as it was then: if the tool has changed since, its calls wait for approval until it is granted without this.",
          }),
        }),
      )
      .max(64),
  }),
  output: AgentProfile,
  errors: ["forbidden", "not_found"],
});

export const getAgentUsage = operation({
  name: "getAgentUsage",
  socket: "agents.usage",
  summary:
    "Returns turns, failures and tokens of the caller's agents by agent, conversation and day.",
  cost: { call: 5 },
  input: z
    .object({
      since: timestamp.optional().meta({
        description: "Leaves out the days (UTC) before that of this timestamp.",
      }),
      until: timestamp.optional().meta({
        description: "Leaves out the days (UTC) after that of this timestamp.",
      }),
    })
    .check((context) => {
      for (const field of ["since", "until"] as const) {
        const value = context.value[field];
        if (value !== undefined && Number.isNaN(Date.parse(value))) {
          const message = "must be an ISO 8601 timestamp";
          context.issues.push({ code: "custom", message, path: [field], input: value });
        }
      }
    }),
  output: z.object({ items: z.array(UsageRow) }),
});
