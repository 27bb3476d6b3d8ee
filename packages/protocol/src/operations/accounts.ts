import { z } from "zod";
import { cursor, limit, operation, page } from "../operation.ts";
import { Account, addedBy, OwnAccount, Profile, presenceSetting } from "../records.ts";
import { displayName, pictureId, text, username } from "../text/fields.ts";

export const getMe = operation({
  name: "getMe",
  socket: "accounts.me",
  agents: true,
  summary: "Returns the caller's own account.",
  output: OwnAccount,
});

export const getUser = operation({
  name: "getUser",
  socket: "accounts.get",
  policy: "directory",
  summary: "Returns the account with the given username.",
  input: z.object({ username }),
  output: Account,
  errors: ["not_found"],
});

export const getUsers = operation({
  name: "getUsers",
  socket: "accounts.list",
  policy: "directory",
  summary:
    "Lists people and the caller's own agents: all of them, those that match, or those named.",
  cost: { call: 5, each: { usernames: 0.1 } },
  input: z.object({
    query: text(0, 64).optional().meta({
      description:
        "The beginning of a username or of a word in a display name. Ignored if `usernames` is given.",
    }),
    usernames: z.array(username).max(1000).optional().meta({
      description: "Lists only these accounts. Usernames that do not exist are left out.",
    }),
    cursor,
    limit,
  }),
  output: page(Account),
});

/** What `updateMe` can change. */
const UPDATES = ["display_name", "added_by", "presence"] as const;

export const updateMe = operation({
  name: "updateMe",
  socket: "accounts.update",
  policy: { field: "rename", input: "display_name" },
  summary: "Changes the caller's display name or settings and returns the account as `getMe` does.",
  input: z
    .object({
      display_name: displayName.optional(),
      added_by: addedBy.optional().meta({
        description:
          "Who may start conversations with the caller or add them to groups. `known`: people with whom the caller has a conversation in which the caller has written.",
      }),
      presence: presenceSetting.optional().meta({
        description:
          "`hidden`: nobody is told whether the caller is online, and the caller is told of nobody.",
      }),
    })
    .refine((given) => UPDATES.some((field) => given[field] !== undefined), {
      message: "is required, unless added_by or presence is given",
      path: ["display_name"],
    })
    .meta({ anyOf: UPDATES.map((field) => ({ required: [field] })) }),
  output: OwnAccount,
});

export const setAvatar = operation({
  name: "setAvatar",
  socket: "accounts.set_avatar",
  policy: "rename",
  summary: "Changes the caller's picture, and deletes the former one.",
  input: z.object({ file_id: pictureId }),
  output: OwnAccount,
  errors: ["not_found", "conflict"],
});

export const getProfiles = operation({
  name: "getProfiles",
  socket: "accounts.profiles",
  policy: "directory",
  summary:
    "Returns accounts with the addresses of their pictures, which need no token and are valid for at least ten minutes.",
  cost: { call: 1, each: { usernames: 0.2 } },
  input: z.object({
    usernames: z
      .array(username)
      .min(1)
      .max(100)
      .meta({ description: "Those that do not exist are left out of the result." }),
  }),
  output: z.object({ items: z.array(Profile) }),
});

export const blockUser = operation({
  name: "blockUser",
  socket: "accounts.block",
  policy: "directory",
  summary:
    "Blocks a person: they and their agents can no longer write to the caller directly, add the caller to conversations or mention the caller. They are not told.",
  cost: { call: 5 },
  input: z.object({
    username,
    leave_groups: z.boolean().optional().meta({
      description:
        "True: the caller also leaves the groups that the person has started and in which the caller has never written, up to 100 of them.",
    }),
  }),
  output: z
    .object({
      groups_left: z.int().meta({ description: "How many groups the caller has left." }),
      has_more: z.boolean().meta({ description: "Whether to call again to leave more of them." }),
    })
    .optional()
    .meta({ description: "With `leave_groups` only." }),
  errors: ["not_found", "conflict"],
});

export const unblockUser = operation({
  name: "unblockUser",
  socket: "accounts.unblock",
  summary: "Ends a block; succeeds also if there is none.",
  input: z.object({ username }),
  errors: ["not_found"],
});

export const getBlocked = operation({
  name: "getBlocked",
  socket: "accounts.blocked",
  summary: "Lists the people whom the caller blocked, by username.",
  input: z.object({ cursor, limit }),
  output: page(Account),
});
