import type { closeCodes, ErrorCode, turnErrorCodes } from "@parley/protocol";
import type { Limits } from "../config.ts";

/**
 * The words of the reference that no schema carries. Tables over closed lists are exhaustive by
 * type: a new code does not compile until it is explained. Tables over names have a fallback.
 */

/** What an error code means, with a `description` as the server would word it. */
export const errorMeanings: Record<ErrorCode, { meaning: string; example: string }> = {
  bad_request: {
    meaning: "The request is malformed, or a field has the wrong type or value.",
    example: "bad request: content must not be empty or only white space",
  },
  unauthorized: {
    meaning: "The access token is missing, wrong or no longer valid; or the password is wrong.",
    example: "unauthorized: the access token is unknown or expired",
  },
  forbidden: {
    meaning: "The thing exists, and the caller is not allowed to do this with it.",
    example: "forbidden: not a participant",
  },
  not_found: {
    meaning: "The thing does not exist. It takes precedence over `forbidden`.",
    example: "not found: message",
  },
  method_not_allowed: {
    meaning: "The path exists with another HTTP method. Operations are called with POST.",
    example: "method not allowed: use POST",
  },
  conflict: {
    meaning: "It contradicts something that is there already, such as a username that is taken.",
    example: "conflict: the username is taken",
  },
  payload_too_large: {
    meaning: "The body is larger than `frame_bytes`. On the socket: close code 1009.",
    example: "payload too large: at most 262144 bytes",
  },
  unsupported_media_type: {
    meaning: "The body is not sent as `application/json`.",
    example: "unsupported media type: send content-type: application/json",
  },
  rate_limited: {
    meaning: "Too many requests. Wait for `parameters.retry_after` seconds.",
    example: "rate limited: too many requests, try again in 1 s",
  },
  internal: {
    meaning: "The server failed. Its log tells why under the id in the `x-request-id` header.",
    example: "internal error, reference 019a8518-4b77-7c31-a5d0-2f9c5e8b6d14",
  },
  unavailable: {
    meaning: "The server cannot answer now. Wait for `parameters.retry_after` seconds.",
    example: "unavailable: the store or the bus cannot be reached",
  },
};

/** Why a socket was closed, and what a client does next. */
export const closeMeanings: Record<keyof typeof closeCodes, string> = {
  goingAway: "The server is stopping. Reconnect, with jitter.",
  messageTooBig: "A frame was larger than `frame_bytes`. Reconnect, and do not send it again.",
  signedOut: "The token is no longer valid. Sign in again.",
  tooSlow: "The client did not read what it was sent. Reconnect and catch up with `getUpdates`.",
};

/** Why an agent's turn failed. */
export const turnErrorMeanings: Record<(typeof turnErrorCodes)[number], string> = {
  key_missing: "The owner has stored no key for the provider.",
  key_rejected: "The provider did not accept the key.",
  provider_rate_limited: "The provider asked to slow down, and three tries were not enough.",
  provider_unavailable: "The provider could not be reached or failed.",
  provider_refused: "The provider declined to answer.",
  context_too_long: "The conversation does not fit the model.",
  timeout: "The provider took too long.",
  interrupted: "The server stopped in the middle. The message keeps what was delivered.",
  budget_exceeded: "A limit that the owner has set is reached. The provider was not called.",
  internal: "The server failed.",
};

export const limitMeanings: Record<keyof Limits, string> = {
  frame_bytes: "Bytes of a request body or of a socket frame.",
  page_size: "Items on a page.",
  group_participants: "Participants of a group.",
  sockets_per_user: "Sockets one user has open at the same time.",
  messages_per_second: "Messages a user sends per second. 0 lifts it.",
  message_burst: "Messages a user sends at once after a pause.",
  operations_per_second: "Other operations a user calls per second. 0 lifts it.",
  operation_burst: "Other operations a user calls at once after a pause.",
  signups_per_hour: "Accounts made per hour from one address. 0 lifts it.",
  searches_per_second: "Searches a user makes per second. 0 lifts it.",
  search_burst: "Searches a user makes at once after a pause.",
  reactions_per_message: "Different emoji that a message has as reactions.",
  reactions_per_person: "Reactions of one account to a message.",
  backlog_bytes: "Bytes a client leaves unread until it is cut off.",
  backlog_total_bytes:
    "Bytes all clients of a node leave unread until those furthest behind are cut off.",
  idle_seconds: "Seconds a socket is kept that does not answer pings.",
  session_days: "Days after which a session ends, however much it is used.",
};

/** Titles of the resources: the part of a socket name before the dot. */
const resourceTitles: Record<string, string> = { auth: "Session", sync: "Synchronisation" };

/** What a resource is about; its title for one that is not listed. */
const resourceMeanings: Record<string, string> = {
  accounts: "People and agents.",
  agents: "The caller's agents: keys, profiles, limits, and the turns in which they answer.",
  auth: "Signing up and in, and the sessions that come of it.",
  components: "Buttons and forms in messages.",
  conversations: "Direct conversations and groups, their members, and how far they were read.",
  groups: "Agents in groups.",
  messages: "Messages and their history.",
  reactions: "Emoji on messages.",
  service: "What browsers, operators and generators fetch.",
  sync: "What changed while a client was away.",
  typing: "Who is typing.",
};

export const resourceTag = (resource: string) => ({
  name: resourceTitle(resource),
  description: resourceMeanings[resource] ?? `${resourceTitle(resource)}.`,
});

export const resourceTitle = (resource: string) =>
  resourceTitles[resource] ?? resource.charAt(0).toUpperCase() + resource.slice(1);

/** What a field of this name means wherever it appears, unless its schema says more. */
export const fieldMeanings: Record<string, string> = {
  access_token: "Opaque; sent as `authorization: Bearer <token>`.",
  account: "The account that is signed in.",
  actor: "Who is typing.",
  after: "A message; the page begins after it.",
  agent_username: "The agent's username, of the form `<owner>:<provider>`.",
  ahead: "Conversations that changed since, with their counters.",
  always_on: "Whether the agent answers every human message; otherwise it answers mentions.",
  api_key: "The provider's API key. It is sealed, and never returned.",
  around: "A message; the page surrounds it.",
  before: "A message; the page ends before it.",
  changes: "What changed of the group itself.",
  chat_id: "The conversation.",
  client_msg_id: "The client's own identifier of the message, echoed in its event.",
  content: "Markdown with the component markup. Its length counts in bytes of UTF-8.",
  conversation: "The conversation as it is now.",
  conversation_id: "The conversation.",
  created_at: "When it came to be.",
  created_by: "Who started it.",
  current: "Whether it is the session of this call.",
  cursor: "`next_cursor` of the page before; without it, the first page.",
  deleted_ids: "Messages deleted for everyone or hidden by the caller since.",
  delta: "The text to append.",
  display_name: "The name shown to people.",
  edited_at: "When the content last changed; null if it never did.",
  emoji:
    "Exactly one emoji, skin tones and flags included. One without its variation selector counts as the one with it.",
  expires_at: "When the token ends unless it is used.",
  gone: "Conversations the caller no longer takes part in.",
  has_more: "Whether another call would return more.",
  id: "Its own id.",
  ids: "The messages.",
  input_tokens: "Tokens the model read.",
  is_typing: "Whether the indicator is shown.",
  key_configured: "Whether the caller has stored a key for this agent.",
  key_tail:
    "Eight mask characters and the last four of the stored key; the mask alone for a key of four or fewer.",
  last_message: "The latest message; null in an empty conversation.",
  last_read_seq: "The place up to which it is read.",
  last_used_at: "When its token was last used.",
  message_id: "The message.",
  message_ids: "The messages, all of this conversation.",
  messages: "The messages that changed, as they are now.",
  model: "The name of the model.",
  new: "Conversations the caller did not name, with their counters.",
  next_cursor: "Pass it on as `cursor`; null on the last page.",
  offset: "Bytes of UTF-8 the message has after appending.",
  output_tokens: "Tokens the model wrote.",
  participant_count: "How many take part, also where not all are listed.",
  password: "The account's password.",
  provider: "The provider's identifier.",
  reactions: "The reactions, counted by emoji.",
  reactor: "Who reacted.",
  reader: "Who read.",
  remove: "True removes without toggling. Default false.",
  reply_to_id: "The message this one answers.",
  retry_after: "Seconds to wait before trying again.",
  sender: "Who wrote it.",
  seq: "A value of the conversation's change counter.",
  session_id: "The session.",
  since_seq: "The value of the counter the caller is up to date with.",
  title: "The name of a group.",
  triggered_by: "The message that started the turn.",
  unread: "The unread messages by who wrote them, and those that mention the caller.",
  unread_count: "How many messages the caller has not read.",
  usage: "Tokens used; null where unknown or not the caller's to see.",
  user_agent: "What the client called itself.",
  username: "The account's username. Case does not matter.",
  usernames: "The accounts, by username.",
};
