import { turnErrorCodes } from "@parley/protocol";
import { allOperations } from "./contract.ts";
import { type Html, html, json, name, panel, pretty, words } from "./html.ts";
import { turnErrorMeanings } from "./prose.ts";

interface Chapter {
  id: string;
  title: string;
  body: Html;
  /** The operation that the chapter explains; without it the chapter is left out. */
  about?: string;
}

const exists = (operation: string) => allOperations.some((each) => each.name === operation);

/** The chapters before the tables: how to start, and rules that concern several operations. */
export function chapters(): Chapter[] {
  const all: Chapter[] = [
    { id: "getting-started", title: "Getting started", body: gettingStarted() },
    { id: "conventions", title: "Wire conventions", body: conventions() },
    { id: "authentication", title: "Authentication", body: authentication() },
    { id: "socket", title: "The socket", body: socket() },
    { id: "agents-answer", title: "When agents answer", body: agents(), about: "setAgentKey" },
    {
      id: "components",
      title: "Component markup",
      body: components(),
      about: "sendComponentAction",
    },
  ];
  return all.filter(({ about }) => about === undefined || exists(about));
}

/** The call as a curl command, for a shell in which `PARLEY` and `TOKEN` are set. */
export function curl(
  operation: string,
  body: object | null,
  signedIn: boolean,
  width = 48,
): string {
  const lines = [`curl ${body ? "" : "-X POST "}"$PARLEY/api/${operation}"`];
  if (signedIn) lines.push(`-H "authorization: Bearer $TOKEN"`);
  if (body) {
    const quoted = pretty(body, width).replaceAll("'", "'\\''").replaceAll("\n", "\n  ");
    lines.push(`-H "content-type: application/json"`, `-d '${quoted}'`);
  }
  return lines.join(" \\\n  ");
}

const list = (...sentences: string[]) =>
  html`<ul>${sentences.map((sentence) => html`<li>${words(sentence)}</li>`)}</ul>`;

const paragraph = (sentence: string) => html`<p>${words(sentence)}</p>`;

const conversation = "019a8517-92d1-7a44-8c1d-0e6b7f3a9d55";

const shell = (lines: string) => panel("Shell", lines);
const typed = (operation: string, body: object) => curl(operation, body, true, 72);

function gettingStarted(): Html {
  const answered = exists("setAgentKey");
  return html`
${paragraph("From nothing to a conversation in a few steps. `PARLEY` is the address of your server; the result of the first call has the token.")}
<ol class="steps">
<li><h3>Create an account</h3>
${paragraph("It is signed in at once, and has one agent per provider.")}
${shell(`export PARLEY=http://localhost:8080
${curl("signUp", { username: "ada", password: "correct horse battery" }, false, 72)}

export TOKEN=ply_…   # result.access_token`)}</li>
${answered && keyStep()}
<li><h3>Open the socket</h3>
${paragraph("In a second terminal, with websocat or any other WebSocket client.")}
${shell(`websocat "ws://localhost:8080/api/ws?token=$TOKEN"`)}</li>
<li><h3>Start a conversation</h3>
${paragraph(answered ? "With your own agent:" : "With somebody who has an account:")}
${shell(typed("startChat", { usernames: [answered ? "ada:claude" : "grace"] }))}</li>
<li><h3>Send a message</h3>
${paragraph("`chat_id` is `result.id` of the call before.")}
${shell(typed("sendMessage", { chat_id: conversation, content: "Hello!" }))}
${answered && streamed()}</li>
</ol>`;
}

const keyStep = () => html`<li><h3>Give an agent a key</h3>
${paragraph("A key that begins with `sandbox` never leaves the server: a built-in model answers at no cost. (Servers may be configured to refuse such keys.) For real answers use an API key of the provider.")}
${shell(typed("setAgentKey", { provider: "claude", api_key: "sandbox-0123456789" }))}</li>`;

const streamed = () => html`
${paragraph("The socket shows your message, then the agent's answer: an empty placeholder, its text in deltas, and the finished message.")}
${panel("Socket, shortened", turnFrames())}`;

const turnFrames = () => {
  const at = (seq: number) => ({ conversation_id: conversation, seq });
  const id = "019a8518-3c40-7d6e-9f01-5b2f6f0c1a2e";
  const frames = [
    { method: "events.messageNew", params: { id, content: "" }, at: at(3) },
    { method: "events.messageDelta", params: { id, delta: "Hello, ", offset: 7 } },
    { method: "events.messageDelta", params: { id, delta: "Ada!", offset: 11 } },
    { method: "events.messageComplete", params: { id, content: "Hello, Ada!" }, at: at(4) },
  ];
  return frames.map((frame, at) => [at > 0 && "\n", json(frame)]);
};

const conventions = () => html`
${list(
  "Every operation is `POST /api/<operation>`, with JSON in the request and in the response. A missing body counts as an empty object. A body with a `content-type` other than JSON is answered with 415.",
  "Field names are in snake_case. Unknown fields are ignored, and the answer names them: the response header `parley-ignored` over HTTP, `ignored` in a reply on the socket. `null` for an optional field is the same as leaving it out, unless its description gives null a meaning. A wrong type or value is answered with 400, and the error names the field.",
  "Ids are UUIDs (version 7) in lowercase. Timestamps are ISO 8601 in UTC with milliseconds: `2026-11-15T02:10:00.000Z`.",
  "A conversation or message that does not exist is answered with 404. One that exists, but that the caller does not take part in, is answered with 403.",
  'An HTTP answer says what is left of the rate that the call counts against: `ratelimit-policy: "messages";q=100;w=5` and `ratelimit: "messages";r=99;t=1` stand for 99 calls left of 100, and one second until all are.',
  "Lists come in pages. Pass `next_cursor` of one page as `cursor` to get the next, until it is null.",
)}
<div class="pair">
${panel("Success", html`${json({ ok: true })}\n${json({ ok: true, result: { unread_count: 0 } })}`)}
${panel("Failure", json({ ok: false, error_code: 404, code: "not_found", description: "not found: message" }))}
</div>
${paragraph("`error_code` is the HTTP status; `code` is the same on the socket. 429 and 503 have `parameters.retry_after`, the seconds to wait before retrying. A 400 for invalid input has `parameters.fields`, which says what is wrong with each field, of at most 20; so have other failures that are about fields, such as a wrong password. A 404 of accounts has their `names`, and a limit of files `max_bytes`. The description is for people: programs read the code and the parameters.")}
<h3>The change counter</h3>
${paragraph("Every conversation has a change counter. It goes up by one for each durable change that all participants see: a message is created, completed, edited or deleted for everyone; a component is used; a file becomes ready or fails; a tool call changes; a reaction is added or removed; the title, the picture, the members, the admin or the mode of an agent changes. The event of such a change carries the counter's new value in `at`.")}
${paragraph("A client receives these events in order and without gaps. A client that sees a gap, or was offline, calls `getUpdates` with the last value it knows; it then has the same state as a client that stayed connected.")}
${paragraph("Changes of a group itself (members, title, picture, admin, modes of agents) are kept in the history. `events.conversationUpdated`, `getChatHistory` and `getUpdates` return them as `changes`, each with its place (`seq`) among the messages.")}
<h3>Changes without a counter</h3>
${list(
  "Names and pictures of accounts: of two records of the same account, the one with the higher `version` is newer. `getUpdates` with `accounts_since` returns the accounts that changed since: their name or picture, and new and deleted ones.",
  "Read positions never move back: the higher `last_read_seq` is newer.",
  "Messages that the caller hides with `deleteMessagesForMe` increase the caller's own counter, which their event carries in `own_seq`. `getUpdates` with `own_since` returns the messages hidden since.",
  "Blocking somebody, and ending a block, increases the same counter. `events.blocksUpdated` and `getUpdates` have the whole block list; the one with the higher `own_seq` is newer.",
  "New settings of an agent increase the same counter. Their `events.accountUpdated` has `own_seq`, and reaches only the owner's clients. A client whose `own_seq` is lower fetches `getMyAgents` again.",
)}
<h3>History</h3>
${paragraph("All counters belong to a history, identified by `history_id` in the frame of `events.hello` and in the results of `getUpdates`. It changes when the server is restored from a backup. A client then discards its data and fetches everything again. It does the same when it knows a counter value above the server's.")}`;

const authentication = () => html`
${list(
  "`signUp` and `signIn` return an access token. Send it as `authorization: Bearer <token>` with every other call.",
  "The socket accepts the same header. Clients that cannot set headers, such as browsers, send the token as the query parameter `token`. An invalid or missing token is answered with 401 before the upgrade.",
  "A token is opaque. It expires 30 days after its last use, and at the latest `session_days` after the sign-in. `signOut` and `revokeSession` end it at once, and sockets opened with it close with code 4401.",
  "Sensitive operations, which change what outlives a session or leaves the service, such as keys, tokens, grants and exports, are answered with `confirmation_required` (403) unless the person has signed in, or confirmed their password with `confirmPassword`, in the last `confirm_minutes`. `parameters.confirm_by` says what to do, `password` or `sign_in`; then repeat the call. A token of `issueToken` counts as a sign-in when it is issued, one of an OIDC issuer when it is used first. Calls of service keys need no confirmation.",
  "Repeated failures of `signIn` are slowed down with 429. A client that sends the `device` of an earlier `signIn` or `signUp` of the account is not affected by the failures of others.",
  "Invisible and direction-changing characters are removed from names. Names of the service and its staff, such as `admin` and `Support Team`, and names that look like them are reserved, and the most common passwords are refused: both are answered with 400.",
  "The backend of a product calls with a service key, `authorization: Bearer pls_…`, over HTTP and never from a browser: a request with an `Origin` header is answered with 403. The header `x-parley-as` names the person whom the call is made for, by username or as `id:<external_id>`; the call then has that person's rights and is written to the audit log. A name that nobody has is answered with 400.",
  "If an OIDC issuer is configured, people sign in with it in a browser: `startOidcSignIn` returns the address to go to, and `finishOidcSignIn` exchanges the answer for an access token. Where an audience is configured, JWTs of the issuer are accepted as bearer tokens too. The account belongs to the issuer and the subject (`iss` and `sub`). It is created at the first sign-in, with a username derived from the issuer's. `getSignInMethods` tells what a server offers.",
)}`;

const socket = () => html`
${paragraph('`GET /api/ws` upgrades to a WebSocket. The token is the second subprotocol, after `parley` (`new WebSocket(url, ["parley", token])`), or the parameter `token` of the address, or a bearer token. The server sends events on it, and every operation except those for service keys can be called on it, by its dotted name or by its HTTP name.')}
<div class="pair">
${panel("Call", json({ method: "messages.send", params: { conversation_id: conversation, content: "Hello!" }, id: 1 }))}
${panel("Reply", json({ ok: false, error: { code: "not_found", message: "not found: conversation" }, id: 1 }))}
</div>
${list(
  "The conversation is `chat_id` over HTTP and `conversation_id` in socket params. Everything else is the same.",
  "`id` is optional: an integer or a string of at most 1,024 characters, which the reply repeats. Calls without an `id` are answered in the order in which they were sent.",
  "A frame that is not JSON or has no `method` is answered with `bad_request`, an unknown method with `not_found`. The socket stays open.",
  "The first frame is `events.hello` with the caller's account. The server sends pings, which WebSocket libraries answer automatically.",
  "A client that calls faster than it reads the replies is slowed down. A client that leaves more than `backlog_bytes` unread is disconnected; it reconnects and calls `getUpdates`.",
)}`;

const agents = () => html`
${list(
  "In a direct conversation with its owner an agent answers every message. In a group an agent that is always on answers every human message; any other agent answers messages that mention it. Agents never trigger agents.",
  "A mention is the handle `@<owner>:<name>`, in any case. A handle in code or after a backslash is not a mention. Neither is one directly after a Latin letter, a digit, `_` or `@`, or directly before another character of a handle: `@ada:claude-x` does not mention `ada:claude`.",
  "Every message that triggers an agent gets an answer of its own. In each conversation an agent answers one message at a time, in order, and each answer takes the answers before it into account. Different agents answer concurrently. At most `waiting_turns` turns wait (see `setAgentLimits`); when that many wait, the last one also answers the messages that come after it.",
  "A new agent may use 2,000,000 tokens per day and answer 60 times per minute, and up to 16 of its turns may wait in each conversation. `setAgentLimits` changes these limits.",
  "`testAgentKey` asks the agent's model for one word, to find out whether a key works before or after it is stored. It costs a few tokens, which the usage figures do not include, and may be called ten times per minute.",
  "`retryAgentTurn` answers the same message again, with its current content. Only one such turn may wait per message; a second one is a `conflict`.",
  "The events of a turn, in order: `events.typing` (true) and `events.messageNew` (with empty content), any number of `events.messageDelta`, `events.messageComplete`, `events.typing` (false). The deltas concatenated are exactly the final content, and none splits a character.",
  "A turn that fails ends as a finished message whose `turn.status` is `failed`. `turn.error` (a `TurnError`) has a sentence for people, which is also the content if nothing was streamed, one of these codes, and `parameters` for programs: never read the sentence. Parameters are missing in turns that an earlier version stored, and where the program of an external agent says why it failed.",
)}
<table class="plain"><thead><tr><th scope="col">Code</th><th scope="col">Meaning</th></tr></thead><tbody>
${turnErrorCodes.map((code) => html`<tr><th scope="row">${name(code)}</th><td>${words(turnErrorMeanings[code])}</td></tr>`)}
</tbody></table>`;

const markupExample = `<card title="AAPL">
Trading at **$187.20**, up 1.4 %.
<button action="trade:buy:AAPL:10">Buy 10</button>
</card>

<form id="feedback">
<input name="email" label="E-mail" type="email" hint="We answer there" required>
<select name="mood" label="Mood" value="Good"><option>Good</option><option>Bad</option></select>
</form>`;

const components = () => html`
${paragraph("Content is CommonMark with the elements below and no other HTML: any other tag is shown as text. Attributes are plain text, never URLs or scripts. While a message streams, an unfinished element is not shown.")}
${panel("Message content", markupExample)}
${list(
  "A field may have a `hint`, which describes it, and a `value`, which it is prefilled with: for a `<select>` one of its options.",
  "`sendComponentAction` submits a pressed button with its `action`, or a form with `form_submit:<id>` and the `fields`.",
  "The reply is posted by the agent that wrote the message. If a person wrote it, or the agent has left, another agent of the conversation replies, the caller's own first. If there is none, no reply is posted.",
  "The reply's `reply_to_id` is the message with the component, its `action` says who submitted what, and its content quotes the submitted values. A reply triggers no agent; models see it as an action of the person.",
  "The message with the component lists in `uses` who used which of its components. A use is a change that the counter counts; its event is `events.messageEdited` with an unchanged `edited_at`. A token that no component of the message has gets a reply, but is not listed.",
  "Tokens are matched by prefix. Parts after a complete token are ignored. A token with a missing part gets the acknowledgement of an unknown token.",
)}
<table class="plain"><thead><tr><th scope="col">Action</th><th scope="col">Reply</th></tr></thead><tbody>
${actions.map(([action, reply]) => html`<tr><th scope="row"><code>${action}</code></th><td>${reply}</td></tr>`)}
</tbody></table>`;

const actions = [
  ["trade:buy:<symbol>:<quantity>", "A card «Buy order placed»."],
  ["trade:sell:<symbol>:<quantity>", "A card «Sell order placed»."],
  ["alert:<symbol>:<gt or lt>:<value>", "A card «Alert set»."],
  ["modify:limit", "A form that asks for a limit price."],
  ["form_submit:<id>", "A card «Form submitted» that lists the fields."],
  ["call:<id>:approve or call:<id>:reject", "Decides about a tool call, for its owner."],
  ["tool:<tool>", "The agent asks for the tool with the fields as arguments, if it may use it."],
  ["cancel:… or dismiss:…", "None. Its use is listed all the same."],
  ["any other token", "An acknowledgement."],
];
