import { z } from "zod";
import { operation } from "../operation.ts";
import { Presence } from "../records.ts";
import { username } from "../text/fields.ts";

export const watchPresence = operation({
  name: "watchPresence",
  socket: "presence.watch",
  summary:
    "Tells who of these people is online, and with `events.presence` what changes while the socket is open. A call replaces the list of the socket. Over HTTP it answers once.",
  cost: { call: 2, each: { usernames: 0.2 } },
  input: z.object({
    usernames: z.array(username).max(200).meta({
      description:
        "Nothing is told of people with whom the caller shares no conversation of at most 100 people, of agents, and of names that do not exist: they are shown as not online. An empty list ends what the socket watches.",
    }),
  }),
  output: z.object({
    items: z.array(Presence).meta({ description: "One for each username, in their order." }),
  }),
});

export const setActivity = operation({
  name: "setActivity",
  socket: "presence.activity",
  summary:
    "Says whether the person is at the screen of the client with this socket. Over HTTP it has no effect.",
  input: z.object({
    active: z.boolean().meta({
      description:
        "A socket that has not said so is not active. It is not active any more once it is closed.",
    }),
  }),
});
