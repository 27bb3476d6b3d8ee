import { z } from "zod";
import { cursor, limit, operation, page } from "../operation.ts";
import { Account, OwnAccount } from "../records.ts";
import { displayName, text, username } from "../text.ts";

export const getMe = operation({
  name: "getMe",
  socket: "accounts.me",
  summary: "Returns the caller's own account.",
  output: OwnAccount,
});

export const getUser = operation({
  name: "getUser",
  socket: "accounts.get",
  summary: "Returns the account with the given username.",
  input: z.object({ username }),
  output: Account,
  errors: ["not_found"],
});

export const getUsers = operation({
  name: "getUsers",
  socket: "accounts.list",
  summary:
    "Lists people and the caller's own agents: all of them, those that match, or those named.",
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

export const updateMe = operation({
  name: "updateMe",
  socket: "accounts.update",
  summary: "Changes the caller's display name and returns the account.",
  input: z.object({ display_name: displayName }),
  output: Account,
});
