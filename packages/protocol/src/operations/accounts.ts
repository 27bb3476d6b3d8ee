import { z } from "zod";
import { cursor, limit, operation, page } from "../operation.ts";
import { Account } from "../records.ts";
import { displayName, text, username } from "../text.ts";

export const getMe = operation({
  name: "getMe",
  socket: "accounts.me",
  summary: "Returns the caller's account.",
  output: Account,
});

export const getUser = operation({
  name: "getUser",
  socket: "accounts.get",
  summary: "Returns one account by its username.",
  input: z.object({ username }),
  output: Account,
  errors: ["not_found"],
});

export const getUsers = operation({
  name: "getUsers",
  socket: "accounts.list",
  summary: "Lists people and the caller's own agents, by name.",
  input: z.object({
    query: text(0, 64).optional().meta({
      description: "Beginning of a username or of a word of the display name.",
    }),
    usernames: z.array(username).max(1000).optional(),
    cursor,
    limit,
  }),
  output: page(Account),
});

export const updateMe = operation({
  name: "updateMe",
  socket: "accounts.update",
  summary: "Changes the caller's display name.",
  input: z.object({ display_name: displayName }),
  output: Account,
});
