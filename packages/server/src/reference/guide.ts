import { turnErrorCodes } from "@parley/protocol";
import { allOperations } from "./contract.ts";
import { type Html, html, json, name, panel, pretty, words } from "./html.ts";
import { turnErrorMeanings } from "./prose.ts";

interface Chapter {
  id: string;
  title: string;
  body: Html;
  /** The operation without which there is nothing to explain. */
  about?: string;
}

const exists = (operation: string) => allOperations.some((each) => each.name === operation);

/** The chapters that explain what the tables cannot. */
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

/** The call as one types it, for a shell that has `PARLEY` and perhaps `TOKEN`. */
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
${paragraph("A few steps from nothing to a conversation. Set the address of your server first; the token comes with the first answer.")}
<ol class="steps">
<li><h3>Make an account</h3>
${paragraph("It comes with one agent per provider, and signed in.")}
${shell(`export PARLEY=http://localhost:8080
${curl("signUp", { username: "ada", password: "correct horse battery" }, false, 72)}

export TOKEN=ply_…   # result.access_token`)}</li>
${answered && keyStep()}
<li><h3>Listen</h3>
${paragraph("Any WebSocket client does; this is websocat, in a second terminal.")}
${shell(`websocat "ws://localhost:8080/api/ws?token=$TOKEN"`)}</li>
<li><h3>Start a conversation</h3>
${paragraph(answered ? "With your own agent:" : "With somebody who has an account:")}
${shell(typed("startChat", { usernames: [answered ? "ada:claude" : "grace"] }))}</li>
<li><h3>Say something</h3>
${paragraph("With `result.id` of the answer before as `chat_id`.")}
${shell(typed("sendMessage", { chat_id: conversation, content: "Hello!" }))}
${answered && streamed()}</li>
</ol>`;
}

const keyStep = () => html`<li><h3>Give an agent a key</h3>
${paragraph("A key that begins with `sandbox` never leaves the server: a built-in model answers, at no cost, unless the server is set to refuse such keys. Use a key of the provider for real answers.")}
${shell(typed("setAgentKey", { provider: "claude", api_key: "sandbox-0123456789" }))}</li>`;

const streamed = () => html`
${paragraph("The socket shows your message, then the agent's: an empty placeholder, its text in pieces, and the finished message.")}
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
  "Every operation is `POST /api/<operation>` with JSON in and out. A missing body is an empty object; a body that is not sent as JSON is a 415.",
  "Field names are in snake_case. Unknown fields are ignored, and `null` for an optional field is the same as leaving it out, unless its table says what null means; a wrong type or value is a 400 that names the field.",
  "Ids are UUIDs (version 7) in lowercase. Timestamps are ISO 8601 in UTC with milliseconds: `2026-11-15T02:10:00.000Z`.",
  "What does not exist is a 404; what exists and is not the caller's to see is a 403.",
)}
<div class="pair">
${panel("Success", html`${json({ ok: true })}\n${json({ ok: true, result: { unread_count: 0 } })}`)}
${panel("Failure", json({ ok: false, error_code: 404, code: "not_found", description: "not found: message" }))}
</div>
${paragraph("`error_code` is the HTTP status and `code` the symbol that the socket uses too. `parameters.retry_after` (seconds) comes with 429 and 503, `parameters.fields` (what is wrong with which field) with a 400.")}
<h3>The change counter</h3>
${paragraph("Every conversation counts the changes that all participants see: a message created, completed, edited or deleted, a component used, a reaction, a new title, member, admin or mode of an agent. The events of those changes carry the counter's new value in `at`, in order and without gaps. A client that sees a jump, or was away, calls `getUpdates` with the last value it knows and is then like one that stayed.")}
${paragraph("What changed of a group itself is kept: `events.conversationUpdated`, `getChatHistory` and `getUpdates` carry it as `changes`, each with its place (`seq`) among the messages.")}
${paragraph("Changes that no conversation counts have an order of their own. Of two records of one account the one with the higher `version` is the newer. Read positions never move back. A message that somebody deletes for themselves takes their own counter up, which its event carries in `own_seq`. `getUpdates` without `chat_id` tells new names and hidden messages since `accounts_since` and `own_since`.")}
${paragraph("Counters belong to a history, named by `history_id` in the frame of `events.hello` and in the results of `getUpdates`. It changes when the server is restored from a backup: a client then drops what it has and fetches it anew. The same goes for a client that has a counter above the server's.")}`;

const authentication = () => html`
${list(
  "`signUp` and `signIn` return an access token. Send it as `authorization: Bearer <token>` with every other call.",
  "The socket takes the same header, or the token as the query parameter `token` where a client cannot set headers, as in browsers. A bad one is a 401 before the upgrade.",
  "A token is opaque. It lasts 30 days from its last use and `session_days` from the sign-in at the most, until `signOut`, or until `revokeSession` ends it from elsewhere; sockets opened with it then close with code 4401.",
  "Repeated failures of `signIn` are slowed down with a 429. A client that sends the `device` of an earlier `signIn` or `signUp` of the account is slowed down by its own failures alone.",
  "Names lose invisible and direction-changing characters. Names of the service and its staff, such as `admin` or `support`, are reserved: a 400 that names the field. So are the most common passwords.",
  "Where an OIDC issuer is configured, its JWTs are accepted as bearer tokens too. Whoever their `iss` and `sub` mean gets an account at first sight, with a username near to the one that the issuer has for them.",
)}`;

const socket = () => html`
${paragraph("`GET /api/ws` upgrades to a WebSocket. It pushes the events, and every operation can be called on it by its dotted name or by its HTTP name.")}
<div class="pair">
${panel("Call", json({ method: "messages.send", params: { conversation_id: conversation, content: "Hello!" }, id: 1 }))}
${panel("Reply", json({ ok: false, error: { code: "not_found", message: "not found: conversation" }, id: 1 }))}
</div>
${list(
  "The conversation is `chat_id` over HTTP and `conversation_id` on the socket. Everything else is the same.",
  "`id` is optional, a string or an integer, and the reply repeats it. Replies to frames without one come in the order of the requests.",
  "A frame that is no JSON or has no `method` gets a `bad_request` reply; an unknown method is `not_found`. The socket stays open.",
  "The first frame is `events.hello` with the caller's account. WebSocket clients answer the server's pings by themselves.",
)}`;

const agents = () => html`
${list(
  "In a direct conversation with its owner an agent answers every message. In a group it answers when mentioned by its handle, `@<owner>:<provider>` (in any case, not in code or after a backslash; it ends where no character of a handle follows, and a Latin letter, a digit, `_` or `@` before it makes it part of a word), or every human message where it is set to always on.",
  "`testAgentKey` asks the agent's model for a word and says whether the key works, before or after it is stored. It costs a few tokens, which no usage figure counts, and can be called ten times a minute.",
  "Agents never start agents. Every message that triggers an agent gets an answer of its own, one at a time in each conversation and in order, each answer knowing those before it. At most `waiting_turns` of them wait (see `setAgentLimits`); beyond that the last one answers the further messages too.",
  "A new agent may use 2,000,000 tokens a day and answer 60 times a minute, and up to 16 of its turns wait in each conversation. `setAgentLimits` changes or lifts these limits.",
  "`retryAgentTurn` answers the same message once more, as it reads by then. One such turn may wait for each message; a second one is a `conflict`.",
  "The order on the wire: `events.typing` (true) and `events.messageNew` (empty), any number of `events.messageDelta`, `events.messageComplete`, `events.typing` (false). The deltas together are exactly the final content, and none splits a character.",
  "A turn that fails ends as a message whose `turn.status` is `failed`, with a sentence a person can act on and one of these codes in `turn.error`:",
)}
<table class="plain"><thead><tr><th scope="col">Code</th><th scope="col">Meaning</th></tr></thead><tbody>
${turnErrorCodes.map((code) => html`<tr><th scope="row">${name(code)}</th><td>${words(turnErrorMeanings[code])}</td></tr>`)}
</tbody></table>`;

const markupExample = `<card title="AAPL">
Trading at **$187.20**, up 1.4 %.
<button action="trade:buy:AAPL:10">Buy 10</button>
</card>

<form id="feedback">
<input name="email" label="E-mail" type="email" required>
<select name="mood" label="Mood"><option>Good</option><option>Bad</option></select>
</form>`;

const components = () => html`
${paragraph("Content is CommonMark with these elements and no other HTML; anything else is shown as text. Attributes are text, never addresses or script.")}
${panel("Message content", markupExample)}
${list(
  "A press on a button, or a form, is sent with `sendComponentAction`: the button's `action`, or `form_submit:<id>` with the `fields`.",
  "The agent that wrote the message replies; where a person wrote it, or the agent has left, another agent of the conversation does, the caller's own first. Where there is none, nothing is posted.",
  "The reply has the component's message as `reply_to_id` and who pressed in `action`. What they sent is quoted in its content. It starts no agent, and models are told of it as what the person did.",
  "The component's message lists in `uses` who used which of its components: a counted change, sent as `events.messageEdited` with `edited_at` as it was. A token that no component of the message has is answered and not listed.",
  "Tokens are matched by prefix. Further parts after a whole one are ignored; where a part is missing it is acknowledged like any other token.",
)}
<table class="plain"><thead><tr><th scope="col">Action</th><th scope="col">Answer</th></tr></thead><tbody>
${actions.map(([action, answer]) => html`<tr><th scope="row"><code>${action}</code></th><td>${answer}</td></tr>`)}
</tbody></table>`;

const actions = [
  ["trade:buy:<symbol>:<quantity>", "A card «Buy order placed»."],
  ["trade:sell:<symbol>:<quantity>", "A card «Sell order placed»."],
  ["alert:<symbol>:<gt or lt>:<value>", "A confirmation «Alert set»."],
  ["modify:limit", "A form that asks for a limit price."],
  ["form_submit:<id>", "A card «Form submitted» with the fields."],
  ["cancel:… or dismiss:…", "None; its use is shown all the same."],
  ["anything else", "An acknowledgement."],
];
