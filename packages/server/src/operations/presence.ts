import { operations } from "@parley/protocol";
import { createResource } from "../calls/bind.ts";

export const presence = createResource<"presence">();

presence.handle(operations.watchPresence, ({ presence, caller, origin }, { usernames }) =>
  presence.watch(caller.account.username, usernames, origin.socket_id),
);

presence.handle(operations.setActivity, async ({ presence, caller, origin }, { active }) =>
  presence.setActivity(caller.account.username, active, origin.socket_id),
);
