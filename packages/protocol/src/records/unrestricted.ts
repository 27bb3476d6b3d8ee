import type { Policy } from "./policies.ts";

/** The policy of people for whom nothing is set. */
export const UNRESTRICTED: Policy = {
  directory: "everyone",
  start_chats: "everyone",
  rename: true,
  agents: true,
  files: true,
  hooks: true,
  delete_account: true,
};
