import { createHash } from "node:crypto";
import { bodyErrors, closeCodes, commonErrors, errorStatus, tokenErrors } from "@parley/protocol";
import manifest from "../../../package.json" with { type: "json" };
import { LIMITS } from "../../config/limits.ts";
import { entry, eventBlock, operationBlock, recordBlock } from "./blocks.ts";
import { allErrors, allEvents, byResource } from "./contract.ts";
import guide from "./guide.md" with { type: "text" };
import { errorLink, example, render, table } from "./markdown.ts";
import {
  accessMeanings,
  closeMeanings,
  errorMeanings,
  resourceTitle,
  turnErrorMeanings,
} from "./prose.ts";
import { createSchemaBook } from "./schemas.ts";
import style from "./style.css" with { type: "text" };

const styleHash = createHash("sha256").update(style).digest("base64");

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

/** A section; the sidebar lists its entries below its title. */
interface Section {
  id: string;
  title: string;
  body: string;
  entries?: readonly string[];
}

/** The reference for people: one page without scripts, generated from the contract. */
export function referencePage(): string {
  const book = createSchemaBook("#", "draft-2020-12");
  const operations = [...byResource()].map(([resource, each]) => ({
    id: `resource-${resource}`,
    title: resourceTitle(resource),
    body: each.map((operation) => operationBlock(operation, book)).join(""),
    entries: each.map(({ name }) => name),
  }));
  const events = allEvents.map((event) => eventBlock(event, book));
  // Last, because converting operations and events collects the records they refer to.
  const records = Object.keys(book.shared);
  return layout({
    Guide: chapters(),
    Operations: operations,
    Reference: [
      {
        id: "events",
        title: "Events",
        body: render(EVENTS) + events.join(""),
        entries: allEvents.map(([name]) => name),
      },
      {
        id: "records",
        title: "Records",
        body: records.map((name) => recordBlock(name, book)).join(""),
        entries: records,
      },
      { id: "access", title: "Access levels", body: render(accessTable()) },
      { id: "errors", title: "Error codes", body: errors() },
      { id: "close-codes", title: "Close codes", body: render(closeTable()) },
      { id: "limits", title: "Limits", body: render(limitTable()) },
    ],
  });
}

const layout = (parts: Record<string, Section[]>) => `<!doctype html>
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
${Object.entries(parts).map(navPart).join("")}
</nav>
<main id="content">
<header>${render(INTRODUCTION)}</header>
${Object.values(parts).flat().map(section).join("")}
</main>
</body>
</html>
`;

const INTRODUCTION = `# Parley reference

A chat backend in which people and AI agents take part in the same conversations. Operations are called over HTTP or over a WebSocket, which also carries all events.

- Version ${manifest.version}
- [OpenAPI 3.1](/openapi.json)
- [AsyncAPI 3.0](/asyncapi.json)`;

const EVENTS =
  "Events are frames on the socket. Unless the description says otherwise, an event goes to all clients of all participants of the conversation. A client therefore receives its own messages too, and recognizes them by their `client_msg_id`.";

/** The chapters of the guide: how to start, and rules that concern several operations. */
const chapters = (): Section[] =>
  guide
    .replace("{{turn errors}}", () => meanings("Code", turnErrorMeanings))
    .split(/^## /m)
    .slice(1)
    .map((chapter) => {
      const [title = "", body = ""] = chapter.split(/\n(.*)/s);
      return { id: title.toLowerCase().replaceAll(" ", "-"), title, body: render(body) };
    });

const section = ({ id, title, body }: Section) =>
  `<section id="${id}" aria-labelledby="${id}-title">
<h2 id="${id}-title">${title}</h2>
${body}</section>
`;

const navPart = ([title, sections]: [string, Section[]]) => `<h2>${title}</h2>
<ul>${sections.map(navItem).join("")}</ul>
`;

const navItem = ({ id, title, entries }: Section) =>
  `<li>${link(id, title)}${entries ? `<ul>${entries.map((name) => `<li>${link(name)}</li>`).join("")}</ul>` : ""}</li>\n`;

const link = (id: string, title = id) => `<a href="#${id}">${title}</a>`;

function meanings(title: string, all: Record<string, string>): string {
  const rows = Object.entries(all).map(([name, meaning]) => [`\`${name}\``, meaning]);
  return table([title, "Meaning"], rows);
}

const accessTable = () =>
  `Every operation has an access level. A caller who does not have it is answered with \`forbidden\`.\n\n${meanings("Level", accessMeanings)}`;

function errors(): string {
  const [common, body, token] = [commonErrors, bodyErrors, tokenErrors].map((codes) =>
    codes.map(errorLink).join(", "),
  );
  const text = `Every operation may answer ${common}; over HTTP also ${body}; those that need a token also ${token}.`;
  const entries = allErrors.map((code) => {
    const { meaning, example: description } = errorMeanings[code];
    const status = errorStatus[code];
    const answer = example("Answer", { ok: false, error_code: status, code, description });
    return entry(code, `${status} · ${meaning}`, answer, `error-${code}`);
  });
  return render(text) + entries.join("");
}

function closeTable(): string {
  const names = Object.keys(closeMeanings) as (keyof typeof closeCodes)[];
  const rows = names.map((name) => [`${closeCodes[name]}`, closeMeanings[name]]);
  return table(["Code", "Meaning"], rows);
}

function limitTable(): string {
  const rows = Object.entries(LIMITS).map(([name, limit]) => [
    `\`${name}\``,
    limit.default.toLocaleString("en"),
    limit.meaning,
  ]);
  return `These are the defaults; \`GET /api/limits\` returns the limits of the server. A call that exceeds a rate is answered with \`rate_limited\` and \`parameters.retry_after\`.\n\n${table(["Name", "Default", "Meaning"], rows)}`;
}
