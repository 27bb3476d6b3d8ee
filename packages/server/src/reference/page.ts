import { createHash } from "node:crypto";
import {
  accessLevels,
  bodyErrors,
  closeCodes,
  commonErrors,
  errorStatus,
  tokenErrors,
} from "@parley/protocol";
import manifest from "../../package.json" with { type: "json" };
import { LIMITS } from "../config/limits.ts";
import { eventBlock, operationBlock, recordBlock } from "./blocks.ts";
import { allErrors, allEvents, byResource } from "./contract.ts";
import { chapters } from "./guide.ts";
import { errorName, type Html, html, joined, words } from "./html.ts";
import { accessMeanings, closeMeanings, errorMeanings, resourceTitle } from "./prose.ts";
import { schemaBook } from "./schemas.ts";
import { style } from "./style.ts";

const styleHash = createHash("sha256").update(style.text).digest("base64");

/** The content security policy of the page: only its own style and icon. */
export const referencePolicy = [
  "default-src 'none'",
  `style-src 'sha256-${styleHash}'`,
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const icon = `data:image/svg+xml,${encodeURIComponent(
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><path d="M6 4h20a4 4 0 0 1 4 4v12a4 4 0 0 1-4 4H15l-7 6v-6H6a4 4 0 0 1-4-4V8a4 4 0 0 1 4-4z" fill="#4048c9"/></svg>`,
)}`;

interface Section {
  id: string;
  title: string;
  body: Html;
  /** The entries that the sidebar lists below the title. */
  entries?: readonly string[];
}

/** The reference for people: one page without scripts, generated from the contract. */
export function referencePage(): string {
  const book = schemaBook("#", "draft-2020-12");
  const parts: Record<string, Section[]> = {
    Guide: chapters(),
    Operations: [...byResource()].map(([resource, operations]) => ({
      id: `resource-${resource}`,
      title: resourceTitle(resource),
      body: html`${operations.map((operation) => operationBlock(operation, book))}`,
      entries: operations.map(({ name }) => name),
    })),
    Reference: [
      {
        id: "events",
        title: "Events",
        body: html`${eventIntroduction}${allEvents.map(([name, event]) => eventBlock(name, event, book))}`,
        entries: allEvents.map(([name]) => name),
      },
      // Last, because converting operations and events collects the records they refer to.
      {
        id: "records",
        title: "Records",
        body: html`${Object.keys(book.shared).map((name) => recordBlock(name, book))}`,
        entries: Object.keys(book.shared),
      },
      { id: "access", title: "Access levels", body: accessTable() },
      { id: "errors", title: "Error codes", body: errorTable() },
      { id: "close-codes", title: "Close codes", body: closeTable() },
      { id: "limits", title: "Limits", body: limitTable() },
    ],
  };
  return layout(parts).text;
}

const layout = (parts: Record<string, Section[]>) => html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Parley reference</title>
<link rel="icon" href="${icon}">
<style>${style}</style>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<nav aria-label="Contents">
<a class="brand" href="#content">Parley</a>
${Object.entries(parts).map(([title, sections]) => navPart(title, sections))}
</nav>
<main id="content">
${introduction}
${Object.values(parts).flat().map(section)}
</main>
</body>
</html>
`;

const introduction = html`<header>
<h1>Parley reference</h1>
<p>A chat backend in which people and AI agents take part in the same conversations. Operations are called over HTTP or over a WebSocket, which also carries all events.</p>
<ul class="links"><li>Version ${manifest.version}</li><li><a href="/openapi.json">OpenAPI 3.1</a></li><li><a href="/asyncapi.json">AsyncAPI 3.0</a></li></ul>
</header>`;

const eventIntroduction = html`<p>${words("Events are frames on the socket. Unless the description says otherwise, an event goes to all clients of all participants of the conversation. A client therefore receives its own messages too, and recognizes them by their `client_msg_id`.")}</p>`;

const section = ({
  id,
  title,
  body,
}: Section) => html`<section id="${id}" aria-labelledby="${id}-title">
<h2 id="${id}-title">${title}</h2>
${body}
</section>`;

const navPart = (title: string, sections: Section[]) => html`<h2>${title}</h2>
<ul>${sections.map(navItem)}</ul>`;

const navItem = ({ id, title, entries }: Section) => html`<li><a href="#${id}">${title}</a>
${entries && html`<ul>${entries.map((name) => html`<li><a href="#${name}">${name}</a></li>`)}</ul>`}</li>`;

const table = (titles: readonly string[], rows: readonly Html[]) => html`<table class="plain">
<thead><tr>${titles.map((title) => html`<th scope="col">${title}</th>`)}</tr></thead>
<tbody>${rows}</tbody>
</table>`;

function accessTable(): Html {
  const rows = accessLevels.map(
    (level) => html`<tr>
<th scope="row"><code>${level}</code></th><td>${words(accessMeanings[level])}</td>
</tr>`,
  );
  return html`<p>${words("Every operation has an access level. A caller who does not have it is answered with `forbidden`.")}</p>
${table(["Level", "Who may call"], rows)}`;
}

function errorTable(): Html {
  const rows = allErrors.map(
    (code) => html`<tr id="error-${code}">
<td class="number">${errorStatus[code]}</td><th scope="row"><code>${code}</code></th><td>${words(errorMeanings[code].meaning)}</td>
</tr>`,
  );
  return html`<p>Every operation may answer ${joined(commonErrors.map(errorName), ", ")}; over HTTP also ${joined(bodyErrors.map(errorName), ", ")}; those that need a token also ${joined(tokenErrors.map(errorName), ", ")}.</p>
${table(["Status", "Code", "Meaning"], rows)}`;
}

function closeTable(): Html {
  const rows = Object.entries(closeCodes).map(
    ([name, code]) => html`<tr>
<th scope="row" class="number">${code}</th><td>${words(closeMeanings[name as keyof typeof closeCodes])}</td>
</tr>`,
  );
  return table(["Code", "Meaning"], rows);
}

function limitTable(): Html {
  const rows = Object.entries(LIMITS).map(
    ([name, limit]) => html`<tr>
<th scope="row"><code>${name}</code></th><td class="number">${limit.default.toLocaleString("en")}</td><td>${words(limit.meaning)}</td>
</tr>`,
  );
  return html`<p>${words("These are the defaults; `GET /api/limits` returns the limits of the server. A call that exceeds a rate is answered with `rate_limited` and `parameters.retry_after`.")}</p>
${table(["Name", "Default", "Meaning"], rows)}`;
}
