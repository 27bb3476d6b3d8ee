import { z } from "zod";
import { record } from "./record.ts";

const allowed = (description: string) => z.boolean().meta({ description });

export const Policy = record("Policy", {
  directory: z.enum(["everyone", "shared", "none"]).meta({
    description:
      "Whom `getUsers` lists and finds besides the caller and the caller's agents. `shared`: people who take or took part in one of the caller's conversations. With `shared` and `none`, `getUser`, `getProfiles` and named accounts are limited to those people and their agents.",
  }),
  start_chats: z.enum(["everyone", "shared", "agents", "none"]).meta({
    description:
      "With whom the caller may start conversations, and whom the caller may add to groups. `shared`: people who take or took part in one of the caller's conversations, and the caller's agents. `agents`: the caller's agents. An existing direct conversation is always returned.",
  }),
  rename: allowed("Whether the caller may change the own display name and picture."),
  agents: allowed(
    "Whether the caller may create and change agents, store keys and add tool servers. Agents that exist can be used, and removing is always allowed.",
  ),
  files: allowed("Whether the caller and the caller's agents may upload and send files."),
  hooks: allowed(
    "Whether the caller may create incoming hooks, and whether the caller's hooks may post.",
  ),
  delete_account: allowed("Whether the caller may delete the own account."),
});
export type Policy = z.infer<typeof Policy>;

/** Fields of a policy that override those of another one. An unknown field is an error, not ignored. */
export const PolicyOverrides = z.strictObject({
  directory: Policy.shape.directory.exactOptional(),
  start_chats: Policy.shape.start_chats.exactOptional(),
  rename: Policy.shape.rename.exactOptional(),
  agents: Policy.shape.agents.exactOptional(),
  files: Policy.shape.files.exactOptional(),
  hooks: Policy.shape.hooks.exactOptional(),
  delete_account: Policy.shape.delete_account.exactOptional(),
});
export type PolicyOverrides = z.infer<typeof PolicyOverrides>;
