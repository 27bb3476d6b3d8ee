import { fenceToClose, inertName, inertText, quotedText } from "@parley/protocol/markup";
import { quoteName, visibleJson } from "./quoting.ts";
import type { DetailedCall } from "./tool-calls.ts";

type AskedCall = Pick<DetailedCall, "uuid" | "server" | "tool" | "title" | "arguments">;

/** Longer arguments are cut in the card, which has no button to approve them. */
const MAX_SHOWN_CHARACTERS = 4000;

/**
 * The card that ends a message whose calls wait for the agent's owner, with a button for each decision,
 * for clients that show nothing but messages.
 */
export function approvalCard(calls: readonly AskedCall[]): string {
  const title = calls.length === 1 ? "Approval needed" : `${calls.length} approvals needed`;
  return [`<card title="${title}">`, ...calls.flatMap(describe), "", "</card>"].join("\n");
}

/** The card as it is appended to the text of a model, which may have begun a code block. */
export function cardAfter(text: string, calls: readonly AskedCall[]): string {
  const fence = fenceToClose(text);
  const closed = fence === null ? "" : `\n${fence}`;
  return `${closed}${text === "" ? "" : "\n\n"}${approvalCard(calls)}`;
}

/** What a message says that asks for a tool because somebody used a component. */
export const callNotice = ({ title }: AskedCall, by: string) =>
  `@${by} asked me to use **${inertName(title)}**.`;

/** Whether the card shows all arguments of a call, so that they can be approved there. */
export const isShownWhole = ({ arguments: given }: Pick<AskedCall, "arguments">) =>
  visibleJson(given).length <= MAX_SHOWN_CHARACTERS;

const SHORTENED =
  "The arguments are too long to be shown here. Read them whole and decide in the web client, or with `getToolCalls` and `decideToolCall`.";

function describe(call: AskedCall): string[] {
  const name = inertName(call.title);
  const isWhole = isShownWhole(call);
  const shown = visibleJson(call.arguments).slice(0, MAX_SHOWN_CHARACTERS).toWellFormed();
  return [
    "",
    `**${name}** (${inertText(quoteName(`${call.server}/${call.tool}`))}) would be called with:`,
    "",
    ...quotedText(isWhole ? shown : `${shown}… (shortened)`),
    "",
    isWhole ? `<button action="call:${call.uuid}:approve">Approve</button>` : `${SHORTENED}\n`,
    `<button action="call:${call.uuid}:reject">Reject</button>`,
  ];
}
