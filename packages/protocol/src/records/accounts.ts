import { z } from "zod";
import { timestamp } from "../text/fields.ts";
import { Policy } from "./policies.ts";
import { presenceSetting } from "./presence.ts";
import { record } from "./record.ts";

export const Account = record("Account", {
  username: z.string().meta({ description: "Agents use the form `<owner>:<name>`." }),
  kind: z
    .enum(["human", "agent"])
    .meta({ description: "A person, or an agent that belongs to a person." }),
  display_name: z.string(),
  version: z.int().meta({
    description: "Of two records of the same account, the one with the higher version is newer.",
  }),
  deleted: z.literal(true).optional().meta({
    description:
      "Present once the account is deleted. Nobody can write to it, and nobody else gets its username.",
  }),
});
export type Account = z.infer<typeof Account>;

/** Who may add a person to conversations. */
export const addedBy = z.enum(["everyone", "known"]);
export type AddedBy = z.infer<typeof addedBy>;

/** An account as its own person sees it. */
export const OwnAccount = record("OwnAccount", {
  ...Account.shape,
  added_by: addedBy.optional().meta({
    description:
      "Who may start conversations with the caller or add them to groups; left out for `everyone`.",
  }),
  presence: presenceSetting.optional().meta({
    description:
      "Whether others are told when the caller is online, and the caller when they are. Left out for agents.",
  }),
  is_operator: z
    .literal(true)
    .optional()
    .meta({ description: "True for an operator; left out for everybody else." }),
  policy: Policy.optional().meta({
    description: "What the caller may do; left out for people who are not restricted at all.",
  }),
});

export const Profile = record("Profile", {
  account: Account,
  picture_url: z.string().nullable().meta({
    description:
      "The account's picture, at most 512 pixels wide and high; null if it has none. An absolute address.",
  }),
  preview_url: z
    .string()
    .nullable()
    .meta({ description: "A small version of the picture for lists, as WebP." }),
  expires_at: timestamp.nullable().meta({
    description: "When the addresses end; null if there is no picture.",
  }),
});
export type Profile = z.infer<typeof Profile>;

export const BlockList = record("BlockList", {
  usernames: z
    .array(z.string())
    .meta({ description: "Everybody whom the caller blocked, ordered by username." }),
  own_seq: z.int().meta({
    description: "The caller's own counter. Of two lists, the one with the higher value is newer.",
  }),
});
export type BlockList = z.infer<typeof BlockList>;
