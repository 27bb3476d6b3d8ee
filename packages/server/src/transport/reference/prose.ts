import {
  type Access,
  allowanceOf,
  type closeCodes,
  type ErrorCode,
  type Operation,
  type TurnErrorCode,
  throttles,
} from "@parley/protocol";

/**
 * Explanations in the reference that no schema carries. Tables over closed lists are exhaustive by
 * type: a new code does not compile until it is explained here.
 */

/** What each error code means, with an example of its `description`. */
export const errorMeanings: Record<ErrorCode, { meaning: string; example: string }> = {
  bad_request: {
    meaning:
      "The request is malformed, or a field has the wrong type or value. `parameters.fields` names the fields, at most 20 of them.",
    example: "bad request: content must not be empty or only white space",
  },
  unauthorized: {
    meaning:
      "The access token is missing, unknown or expired. In `signIn`: the username or the password is wrong.",
    example: "unauthorized: the access token is unknown or expired",
  },
  second_factor_required: {
    meaning:
      "Only in `signIn`: the password is right, but the account has a second factor, and the `code` is missing, wrong or used already. Ask for a code and repeat the call with it.",
    example: "second factor required: send the code of your authenticator app",
  },
  forbidden: {
    meaning:
      "The resource exists, but the caller is not allowed to do this with it, or the caller does not have the operation's access level.",
    example: "forbidden: you are not a participant of this conversation",
  },
  confirmation_required: {
    meaning:
      "The operation is sensitive, and the caller has neither signed in nor confirmed their password in the last `confirm_minutes`. `parameters.confirm_by` says how: `password`, with `confirmPassword`, or `sign_in`, with a token of a new sign-in. Then repeat the call.",
    example: "confirmation required: your sign-in was some time ago, confirm your password first",
  },
  suspended: {
    meaning:
      "The account is suspended: its tokens have ended, and it cannot sign in until an operator restores it.",
    example: "suspended: this account is suspended",
  },
  not_found: {
    meaning: "The resource or the operation does not exist. Checked before `forbidden`.",
    example: "not found: message",
  },
  method_not_allowed: {
    meaning: "The path requires another HTTP method. Operations are called with POST.",
    example: "method not allowed: use POST",
  },
  conflict: {
    meaning: "The call contradicts the current state, such as a username that is taken.",
    example: "conflict: the username is taken",
  },
  payload_too_large: {
    meaning:
      "The body is larger than `frame_bytes`; a frame of the socket that is closes it with code 1009. Or a file is larger than `file_bytes`, a picture has too many pixels, or the result of a tool is larger than a reply may be.",
    example: "payload too large: at most 262144 bytes",
  },
  unsupported_media_type: {
    meaning:
      "The request has a body whose `content-type` is not `application/json`. Or a picture is damaged, or not of a supported format.",
    example: "unsupported media type: send content-type: application/json",
  },
  rate_limited: {
    meaning: "Too many requests. Wait for `parameters.retry_after` seconds, then retry.",
    example: "rate limited: too many requests, try again in 1 s",
  },
  internal: {
    meaning:
      "The server failed. Its log has the details, under the id in the `description` and in the `x-request-id` header.",
    example: "internal error, reference 019a8518-4b77-7c31-a5d0-2f9c5e8b6d14",
  },
  unavailable: {
    meaning:
      "The server cannot handle the call now. Wait for `parameters.retry_after` seconds, then retry.",
    example: "unavailable: the store or the bus cannot be reached",
  },
};

/** Who may call the operations of each access level. */
export const accessMeanings: Record<Access, string> = {
  public: "Anybody, without a token.",
  session: "A person with an access token, or a service key that acts for a person.",
  agent:
    "A program with a token of an external agent. It may also call the operations marked with this level, in the conversations that the agent takes part in.",
  service: "A service key that acts for nobody. HTTP only.",
  operator: "A person who is an operator, or a service key.",
};

/** Who may call an operation. */
export const accessOf = ({ access, agents }: Operation) =>
  `Access: \`${access}\`. ${accessMeanings[access]}${agents ? " External agents may call it too, in the conversations that they take part in." : ""}`;

/** What else restricts an operation: a policy, a confirmation, throttles. */
export function rulesOf({ policy, sensitive, throttles: counted }: Operation): string[] {
  const rules = counted.map(
    ({ name, of }) =>
      `${of ?? "Each call"} counts as one of the ${throttles[name].counts}: ${allowanceOf(name)}.`,
  );
  if (sensitive) {
    rules.unshift(
      "Sensitive: people must have signed in, or confirmed their password, in the last `confirm_minutes`.",
    );
  }
  if (policy) {
    const condition = policy.input === null ? "" : ` if \`${policy.input}\` is given`;
    rules.unshift(`The policy of the person can restrict it${condition}: \`${policy.field}\`.`);
  }
  return rules;
}

/** Why the server closes a socket, and what the client should do. */
export const closeMeanings: Record<keyof typeof closeCodes, string> = {
  goingAway:
    "The server is stopping, or cannot deliver all events on this socket. Reconnect with jitter, then call `getUpdates`.",
  messageTooBig: "A frame was larger than `frame_bytes`. Reconnect, and do not send it again.",
  signedOut: "The token is no longer valid. Sign in again.",
  tooSlow: "The client did not read fast enough. Reconnect, then call `getUpdates`.",
};

/** Why an agent's turn failed. */
export const turnErrorMeanings: Record<TurnErrorCode, string> = {
  key_missing: "The owner has not stored a key for the provider, and the operator provides none.",
  key_rejected: "The provider rejected the key.",
  provider_rate_limited: "The provider's rate limit was exceeded, in three attempts.",
  provider_unavailable:
    "The provider could not be reached, failed, or ended its answer without any text.",
  provider_refused: "The provider declined to answer.",
  context_too_long: "The conversation does not fit into the model's context.",
  timeout: "The provider did not answer in time.",
  interrupted: "The server stopped during the turn. The message keeps the text delivered so far.",
  budget_exceeded:
    "A limit of the agent's owner or of the operator does not allow the turn. The provider was not called.",
  tool_limit: "The turn asked for more tool calls than a turn may make.",
  agent_offline:
    "No program of the external agent was connected within ten seconds, or none claimed the turn within thirty.",
  agent_failed: "The program of the external agent reported that it failed.",
  agent_suspended: "The account of the agent's owner is suspended. Nobody was called.",
  internal: "The server failed.",
};

/** Titles of resources, where they differ from the part of the socket name before the dot. */
const resourceTitles: Record<string, string> = { auth: "Session", sync: "Synchronisation" };

/** What each resource is about. A resource that is not listed is described by its title. */
const resourceMeanings: Record<string, string> = {
  accounts: "People and agents.",
  agents: "The caller's agents: keys, profiles, limits, usage and turns.",
  auth: "Sign-up, sign-in, passwords and sessions.",
  components: "Buttons and forms in messages.",
  conversations: "Direct conversations and groups, their members and read positions.",
  groups: "The agents of groups, and the stop of all agents of a conversation.",
  messages: "Messages, their history and search.",
  operators: "For the people who run the service: accounts, the audit log and statistics.",
  reactions: "Emoji reactions to messages.",
  service: "For the backends of products, with a service key: users and their tokens.",
  server: "Health checks, metrics, limits and API documents.",
  sync: "Catching up after a client was offline.",
  turns: "For the programs of external agents: turns to claim, write and finish.",
  typing: "Typing indicators.",
  webhooks: "Events for the backends of products and for integrations.",
};

export const resourceTag = (resource: string) => ({
  name: resourceTitle(resource),
  description: resourceMeanings[resource] ?? `${resourceTitle(resource)}.`,
});

export const resourceTitle = (resource: string) =>
  resourceTitles[resource] ?? resource.charAt(0).toUpperCase() + resource.slice(1);

/** What a field of this name means in every schema that does not describe it itself. */
export const fieldMeanings: Record<string, string> = {
  access_token: "Opaque. Sent as `authorization: Bearer <token>`.",
  account: "The account.",
  actor: "Who is typing.",
  after: "A message id; the page has the messages after it.",
  agent_username: "The agent's username, `<owner>:<name>`.",
  ahead: "Conversations that changed since the `known` value, with their counters.",
  always_on: "True: the agent answers every human message. False: it answers mentions only.",
  api_key: "The provider's API key. It is stored encrypted and never returned.",
  around: "A message id; the page has this message and those before and after it.",
  before: "A message id; the page has the messages before it.",
  chat_id: "The id of the conversation.",
  client_msg_id: "The client's own identifier of the message; null if it has none.",
  content: "Markdown with the component markup. Its length is counted in bytes of UTF-8.",
  conversation: "The conversation as it is now.",
  conversation_id: "The id of the conversation.",
  created_at: "When it was created.",
  created_by: "Who created it.",
  current: "Whether it is the session of this call.",
  current_password: "The password that is valid now.",
  cursor: "The `next_cursor` of the page before. Default: the first page.",
  deleted_ids: "Messages deleted for everyone, or hidden by the caller, since `since_seq`.",
  delta: "The text to append.",
  display_name: "The name shown to people.",
  edited_at: "When the content was last edited; null if it never was.",
  emoji:
    "Exactly one emoji, skin tones and flags included. A form without its variation selector counts as the one with it.",
  gone: "Conversations in `known` that the caller no longer takes part in.",
  id: "The id of this record.",
  ids: "The ids of the messages.",
  input_tokens: "Tokens that the model read.",
  is_typing: "Whether to show the indicator.",
  key_configured: "Whether the owner has stored a key for this agent.",
  key_tail:
    "Eight mask characters and the last four characters of the stored key; the mask alone for a key of four characters or fewer.",
  last_message: "The latest message; null if there is none.",
  last_read_seq: "The counter value up to which the conversation is read.",
  last_used_at: "When the session was last used.",
  message_id: "The id of the message.",
  message_ids: "The ids of the messages, all of this conversation.",
  messages: "The messages.",
  model: "The name of the model.",
  new: "The caller's conversations that are not in `known`, with their counters.",
  next_cursor: "The `cursor` of the next page; null on the last page.",
  offset: "The length of the message in bytes of UTF-8 after appending.",
  output_tokens: "Tokens that the model wrote.",
  participant_count: "The number of participants, including those not listed.",
  password: "The account's password.",
  provider: "The identifier of the provider.",
  reactions: "The reactions, counted by emoji.",
  reactor: "Who reacted.",
  reader: "Who read.",
  remove: "True removes the reaction and never adds it. Default: false.",
  reply_to_id: "The message that this one replies to.",
  retry_after: "Seconds to wait before retrying.",
  sender: "Who wrote it.",
  seq: "A value of the conversation's change counter.",
  session_id: "The id of the session.",
  since_seq: "The counter value that the caller has seen; 0 for everything.",
  title: "The title of a group, or of a conversation with one's own agent.",
  triggered_by: "The id of the message that the turn answers.",
  unread: "The unread messages by kind of sender, and those that mention the caller.",
  unread_count: "The number of messages the caller has not read.",
  usage: "Tokens used; null if unknown or not visible to the caller.",
  user_agent: "The User-Agent header of the client.",
  username: "The account's username. Upper and lower case are the same.",
  usernames: "The usernames of the accounts.",
};
