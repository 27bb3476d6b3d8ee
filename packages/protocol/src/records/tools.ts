import { z } from "zod";
import { uuid } from "../text/fields.ts";
import { record } from "./record.ts";

export const toolPolicies = ["ask", "direct", "always"] as const;

export const ToolGrant = record("ToolGrant", {
  server_id: uuid,
  tool: z.string().meta({ description: "The name of the tool at its server." }),
  policy: z.enum(toolPolicies).meta({
    description:
      "`ask`: every call waits for approval. `direct`: calls run at once in the owner's own conversation with the agent, and wait for approval elsewhere. `always`: calls run at once.",
  }),
  changed: z.boolean().meta({
    description:
      "Whether the tool's description or schema changed since it was granted. Its calls then wait for approval until it is granted again.",
  }),
});
export type ToolGrant = z.infer<typeof ToolGrant>;

export const ToolServer = record("ToolServer", {
  id: uuid,
  name: z.string(),
  url: z.string().nullable().meta({
    description:
      "Only the origin for a server of the operator; null for a program of the operator.",
  }),
  status: z.enum(["ready", "unreachable", "unauthorized"]).meta({
    description:
      "How the last contact with it ended. `unauthorized`: it demands a token, or refuses the one it has.",
  }),
  tools: z
    .array(
      z.object({
        name: z.string(),
        title: z.string().meta({ description: "The name of the tool for people." }),
        description: z.string(),
        input_schema: z
          .record(z.string(), z.unknown())
          .meta({ description: "The JSON Schema of its arguments." }),
      }),
    )
    .meta({ description: "The tools that it offered when it was last asked, at most 128." }),
  has_more_tools: z.literal(true).optional().meta({
    description:
      "Not all of its tools are listed: those in the answer to `getToolServers` have at most `page_bytes` of JSON. `refreshToolServer` lists them.",
  }),
  error: z.string().nullable().meta({ description: "Why it is not ready; null if it is." }),
  operator: z
    .boolean()
    .meta({ description: "Whether the operator offers it to everybody; it cannot be removed." }),
});
export type ToolServer = z.infer<typeof ToolServer>;
