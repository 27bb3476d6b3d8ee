import { z } from "zod";
import { exactlyOne, operation } from "../operation.ts";
import { Account, PolicyOverrides, SharedConversation, SignedIn } from "../records.ts";
import {
  anyText,
  content,
  displayName,
  externalId,
  jsonObject,
  line,
  metadata,
  newUsername,
  text,
  username,
  uuid,
} from "../text/fields.ts";
import { MAX_CONTENT_BYTES } from "./messages.ts";

const DAY_SECONDS = 24 * 60 * 60;

/** A person by one of two names. */
const person = {
  external_id: externalId
    .optional()
    .meta({ description: "The person's id in the product. Either this or `username`." }),
  username: username.optional(),
};

const namesPerson = <Shape extends z.ZodRawShape>(object: z.ZodObject<Shape & typeof person>) =>
  exactlyOne(object, "external_id", "username");

/** A username, or `id:` and an external id. */
const accountName = anyText
  .refine((value) => value.length >= 1 && value.length <= 256, {
    message: "must have 1 to 256 characters",
  })
  .meta({ minLength: 1, maxLength: 256 });

export const upsertUsers = operation({
  name: "upsertUsers",
  socket: "service.upsert_users",
  summary:
    "Creates accounts for users of a product, or updates those that exist: all of them, or none.",
  access: "service",
  input: z.object({
    users: z
      .array(
        z.object({
          external_id: externalId,
          username: newUsername.optional().meta({
            description:
              "Of a new account; it cannot be changed later. By default it is derived from the display name or the id.",
          }),
          display_name: displayName
            .optional()
            .meta({ description: "Default: the username. Left out: an existing one stays." }),
          metadata: metadata.optional().meta({
            description:
              "Texts by name that the product stores with the account, at most 32. They replace earlier ones. Operators and service keys see them.",
          }),
          policy: PolicyOverrides.optional().meta({
            description:
              "What the person may do, where that differs from the server's `PARLEY_POLICY`. It replaces an earlier one; `{}` removes it. Left out: an earlier one stays.",
          }),
        }),
      )
      .min(1)
      .max(500),
  }),
  output: z.object({
    items: z.array(
      z.object({
        external_id: z.string(),
        account: Account,
        created: z.boolean().meta({ description: "Whether the call created the account." }),
      }),
    ),
  }),
  errors: ["conflict"],
});

export const upsertChats = operation({
  name: "upsertChats",
  socket: "service.upsert_chats",
  summary:
    "Creates groups for what a product's users talk about, such as orders, or updates those that exist: all of them, or none.",
  access: "service",
  input: z.object({
    chats: z
      .array(
        z.object({
          external_id: externalId.meta({ description: "The group's id in the product." }),
          title: line(1, 128).optional().meta({ description: "Left out: it stays." }),
          members: z.array(accountName).min(1).max(1000).optional().meta({
            description:
              "Who takes part from then on: usernames, or `id:` and external ids. An agent needs its owner among them; agents that are in the group stay as long as their owners. Required for a new group; left out: they stay.",
          }),
          metadata: jsonObject.optional().meta({
            description:
              "A JSON object of at most 4 KiB, which all participants receive with the group. It replaces an earlier one. Left out: it stays.",
          }),
        }),
      )
      .min(1)
      .max(100),
  }),
  output: z.object({
    items: z.array(
      z.object({
        external_id: z.string(),
        chat: SharedConversation,
        created: z.boolean().meta({ description: "Whether the call created the group." }),
      }),
    ),
  }),
  errors: ["not_found"],
});

export const issueToken = operation({
  name: "issueToken",
  socket: "service.issue_token",
  summary:
    "Signs a person in, for the product's page or app. Use does not extend the access token.",
  access: "service",
  input: namesPerson(
    z.object({
      ...person,
      expires_in: z
        .int()
        .min(60)
        .max(30 * DAY_SECONDS)
        .optional()
        .meta({ description: "Seconds for which the token is valid. Default: one hour." }),
    }),
  ),
  output: SignedIn,
  errors: ["not_found"],
});

export const revokeTokens = operation({
  name: "revokeTokens",
  socket: "service.revoke_tokens",
  summary: "Ends all sessions of a person; sockets opened with their tokens close with code 4401.",
  access: "service",
  input: namesPerson(z.object(person)),
  output: z.object({
    sessions_ended: z.int().meta({ description: "The number of sessions that the call ended." }),
  }),
  errors: ["not_found"],
});

export const importMessages = operation({
  name: "importMessages",
  socket: "service.import_messages",
  summary:
    "Stores the history of a conversation as it was elsewhere: all of the messages, or none. Starts no agent and notifies nobody.",
  access: "service",
  input: z.object({
    chat_id: uuid,
    messages: z
      .array(
        z.object({
          sender: accountName.meta({
            description:
              "A participant, person or agent: the username, or `id:` and a person's external id. Anybody else is `bad_request`.",
          }),
          content: content(MAX_CONTENT_BYTES),
          created_at: z.iso.datetime({ offset: true }).meta({
            description:
              "When the message was sent, in the past. The order of the messages is the given one, whatever their times.",
          }),
          metadata: jsonObject.optional().meta({
            description: "A JSON object of at most 4 KiB, which all participants receive.",
          }),
          client_msg_id: text(1, 64).meta({
            description:
              "The message's id in its source. Importing it again, as the same sender's in the same conversation, returns the first message.",
          }),
        }),
      )
      .min(1)
      .max(500),
  }),
  output: z.object({
    items: z.array(
      z.object({
        client_msg_id: z.string(),
        message_id: uuid,
        created: z.boolean().meta({ description: "Whether the call stored the message." }),
      }),
    ),
  }),
  errors: ["forbidden", "not_found"],
});
