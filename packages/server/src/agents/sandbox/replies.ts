import type { SandboxRequest, SandboxResult } from "./request.ts";

const KEYWORDS = `- \`buy\`, \`buy 3 ACME\`: a card with buttons
- \`alert\`: a card that sets a price alert
- \`form\`: a form with every kind of field
- \`long\`: a long answer with headings, code and a table
- \`slow\`: a slow answer, to try stopping it
- \`fail\`: a turn that fails; also \`fail key\`, \`fail rate\`, \`fail context\`, \`fail refuse\` and \`fail midway\`
- \`files\`: what I see of the files in this conversation
- \`/tool search_messages {"query": "tea"}\`: a call of a tool that this agent may use; one for each such line
- \`what time is it\`: a call of \`current_time\`
- \`help\`: this list`;

export const help = `I am the built-in **sandbox**: a stand-in that behaves like a model, but only follows a script. Say one of these words:

${KEYWORDS}

To talk to a real model, store a real API key for this agent.`;

export function greeting({
  sender,
  text,
  newFiles,
}: Pick<SandboxRequest, "sender" | "text" | "newFiles">): string {
  return `Hello${sender === undefined ? "" : `, ${escapeMarkup(sender)}`}! 👋

I am the built-in **sandbox**, not a real model: this agent's API key begins with \`sandbox\`, so nothing you write leaves this server.
${text === "" ? "" : `\nYou said:\n\n${quote(text)}\n`}${newFiles.length === 0 ? "" : `\n${files(newFiles)}\n`}
Here is what I can show you. Just say the word:

${KEYWORDS}`;
}

export const files = (descriptions: readonly string[]): string =>
  descriptions.length === 0
    ? "I see no files in this conversation. Send me a picture, a text file or a PDF. 📎"
    : `I see:\n\n${descriptions.map((each) => `- ${escapeMarkup(each)}`).join("\n")}`;

const MAX_RESULT_CHARACTERS = 300;

export const toolResults = (results: readonly SandboxResult[]): string =>
  results
    .map(({ tool, text, failed }) => {
      const what = failed ? "failed" : "answered";
      const quoted = text.trim() === "" ? " without a text" : `: «${oneLine(text)}»`;
      return `\`${tool}\` ${what}${quoted}.`;
    })
    .join("\n\n");

export const unknownTool = (name: string, offered: readonly string[]): string =>
  `I am not offered a tool «${oneLine(name)}». ${
    offered.length === 0
      ? "I am offered no tools here."
      : `I am offered: ${offered.map((each) => `\`${each}\``).join(", ")}.`
  }`;

export const wrongArguments = (name: string): string =>
  `I cannot call \`${name}\`: what follows the name must be a JSON object on the same line.`;

/** What a tool or a person wrote, as a quote in a sentence. */
const oneLine = (text: string) =>
  escapeMarkup(shortened(text.trim().replaceAll(/\s+/g, " "), MAX_RESULT_CHARACTERS));

function shortened(text: string, most: number): string {
  const characters = [...text];
  return characters.length > most ? `${characters.slice(0, most).join("")} …` : text;
}

export const buy = (
  symbol: string,
  quantity: number,
) => `Here is an order, ready to be placed. No real shares are involved: this is the sandbox. 📈

<card title="Buy ${quantity} ${symbol}">
**${symbol === "AAPL" ? "Apple Inc." : symbol}**, ${quantity} shares at market price

<button action="trade:buy:${symbol}:${quantity}">Buy ${quantity} ${symbol}</button>
<button action="modify:limit">Set a limit</button>
<button action="cancel:order">Cancel</button>
</card>`;

export const alert = `I can pretend to watch a price for you. This is the sandbox, so nobody will really be woken up. 🔔

<card title="AAPL price alert">
Tell me when **AAPL** rises above **200**.

<button action="alert:AAPL:gt:200">Set alert</button>
<button action="dismiss:alert">Not now</button>
</card>`;

export const form = `Please fill this in. It shows every kind of field a form can have. 📝

<form id="feedback">
<input name="name" label="Your name" type="text" required>
<input name="email" label="E-mail" type="email">
<input name="rating" label="Your rating, as a number" type="number" required>
<input name="date" label="Date of your visit" type="date">
<select name="topic" label="Topic"><option>Praise</option><option>Question</option><option>Problem</option></select>
</form>`;

export const slow =
  "I am in no hurry. One word after another appears here, about three of them a second, which leaves you plenty of time to press stop and see that everything said so far is kept. 🐢";

export const midway =
  "This answer starts out well, and it would go on for quite a while, but the connection is about to";

export const long = `# A long answer from the sandbox

This text is always the same. It exists so that you can watch a long answer arrive piece by piece, scroll while it grows, and stop it whenever you like.

## How an answer travels

A message is stored first, and only then announced. The agent's turn begins with an empty message that everyone in the conversation sees at once. Every piece that the model produces is appended to it and sent on as a small event, which carries the text and the length of the message after it. A client that joins late reads what is there and goes on from that length. When the model has finished, one last event brings the whole message, so that every client ends up with exactly the same bytes, whatever it missed on the way.

1. The placeholder appears, and the agent is shown as typing.
2. Pieces arrive, usually many in a second.
3. The message is final, and the typing indicator goes away.

## What it looks like in code

\`\`\`ts
let content = "";

socket.on("events.messageDelta", ({ delta, offset }) => {
  content += delta;
  if (byteLength(content) !== offset) reload();
});
\`\`\`

The check in the middle is the useful part. Offsets count bytes of UTF-8, and a piece never ends in the middle of a character, not even for 🦜, 日本語 or naïve café. A client that finds another length than it was told has missed something, and simply asks again.

## When things go wrong

| What happens | What you see |
|---|---|
| The provider is busy | A short wait, then the answer |
| The key is wrong | A failed turn that asks for another key |
| The connection breaks midway | The text so far, marked as failed |
| Somebody presses stop | The text so far, marked as stopped |
| The server restarts | The text so far, marked as interrupted |

Nothing of this needs a special client. A failed turn is an ordinary message with a sentence that says what to do, and trying again is one press of a button.

> Patience is not the ability to wait, but the ability to watch a progress indicator with good grace.

## What to do next

- Ask for \`slow\` and stop it halfway.
- Ask for \`form\`, fill it in and send it.
- Ask for \`buy\` and press a button on the card.
- Add a second agent to a group, and let both answer at once.
- Reload the page while a long answer is still arriving.

Thank you for reading to the very end. A real model would have been more original, but it would not have been free of charge.`;

/** Shows text as it was typed: the sandbox repeats no markup of others. */
const escapeMarkup = (text: string) =>
  text.replaceAll(/[<&]/g, (sign) => (sign === "<" ? "&lt;" : "&amp;"));

const MAX_QUOTED_CHARACTERS = 500;

const quote = (text: string) =>
  escapeMarkup(shortened(text, MAX_QUOTED_CHARACTERS)).replaceAll(/^/gm, "> ");
