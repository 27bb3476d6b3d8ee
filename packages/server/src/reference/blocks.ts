import { type Delivery, type EventContract, errorStatus, type Operation } from "@parley/protocol";
import { mayReturnNothing, ownErrors } from "./contract.ts";
import { answerExample, eventExample, exampleOf, frameExample, inputExample } from "./examples.ts";
import { fieldTable, type Mark, typeName } from "./fields.ts";
import { curl } from "./guide.ts";
import { errorName, type Html, html, json, panel, words } from "./html.ts";
import { policyMeaning, SENSITIVE } from "./prose.ts";
import { type Schema, type SchemaBook, variantsOf } from "./schemas.ts";

/** The entry of an operation: names, input, result, errors and examples. */
export function operationBlock(operation: Operation, book: SchemaBook): Html {
  const { name, socket, summary, access, agents, policy, sensitive } = operation;
  const input = book.input(operation.input);
  const output = operation.output && book.output(operation.output);
  const text = html`<p class="names"><code><b>POST</b> /api/${name}</code>${access !== "service" && html`<code>${socket}</code>`}
<span class="note">access: <a href="#access">${access}</a>${agents && html`, <a href="#access">agent</a>`}; cost: ${costOf(operation)}</span></p>
<p>${words(summary)}</p>
${policy && html`<p>${words(policyMeaning(policy))}</p>`}
${sensitive && html`<p>${words(SENSITIVE)}</p>`}
<h4>Input</h4>
${hasFields(input) ? shape(input, "required") : html`<p>None.</p>`}
<h4>Result</h4>
${result(output, mayReturnNothing(operation))}
<h4>Errors</h4>
${errors(operation)}`;
  return entry(name, text, operationExamples(operation, input, output, book));
}

export function eventBlock(name: string, event: EventContract, book: SchemaBook): Html {
  const { params, delivery, summary } = event;
  const frame = eventExample([name, event], book);
  const text = html`<p class="names"><span class="note">${words(deliveryNames[delivery])}</span></p>
<p>${words(summary)}</p>
<h4>Params</h4>
${shape(book.output(params), "optional")}`;
  return entry(name, text, html`${frame && panel("Frame", json(frame))}`);
}

export function recordBlock(name: string, book: SchemaBook): Html {
  const schema = book.shared[name] ?? {};
  const example = panel("Example", json(exampleOf(schema, book.shared)));
  return entry(name, shape(schema, "optional"), example);
}

const deliveryNames: Record<Delivery, string> = {
  counted: "counted: `at` has the new value",
  standing: "`at` has the counter as it stands",
  durable: "stored, without `at`",
  transient: "not stored, without `at`",
};

const entry = (
  name: string,
  text: Html,
  examples: Html,
) => html`<article class="entry" id="${name}">
<div><h3><a href="#${name}">${name}</a></h3>
${text}</div>
<div class="examples">${examples}</div>
</article>`;

const hasFields = ({ properties }: Schema) => !properties || Object.keys(properties).length > 0;

function result(output: Schema | null, optional: boolean): Html {
  if (!output) return html`<p>None: success is <code>{ "ok": true }</code>.</p>`;
  return html`${shape(output, "optional")}${optional && html`<p>Or none: success is then <code>{ "ok": true }</code>.</p>`}`;
}

/** A table of the fields, or the name of the record that has them. */
function shape(schema: Schema, marks: Mark): Html {
  if (schema.properties) return fieldTable(schema, marks);
  const variants = variantsOf(schema);
  if (!variants.some(({ properties }) => properties)) return html`<p>${typeName(schema)}</p>`;
  return html`${variants.map((each, at) => [at > 0 && html`<p>Or:</p>`, shape(each, marks)])}`;
}

function errors(operation: Operation): Html {
  const own = ownErrors(operation).toSorted((a, b) => errorStatus[a] - errorStatus[b]);
  return html`<ul class="codes">
${own.map((code) => html`<li>${errorStatus[code]} ${errorName(code)}</li>`)}
<li><a href="#errors">${own.length > 0 && "and "}those of every operation</a></li>
</ul>`;
}

function operationExamples(
  operation: Operation,
  input: Schema,
  output: Schema | null,
  book: SchemaBook,
): Html {
  const example = inputExample(operation, input, book.shared);
  const body = example && Object.keys(example).length > 0 ? example : null;
  const answer = answerExample(operation, output, book.shared);
  return html`
${example && panel("HTTP", curl(operation.name, body, operation.access !== "public"))}
${example && operation.access !== "service" && panel("Socket", json(frameExample(operation, example, 1)))}
${answer && panel("Answer", json(answer))}`;
}

/** What a call costs, in units of a plain call. */
const costOf = ({ cost: { call, each = {} } }: Operation) =>
  html`${call}${Object.entries(each).map(([field, cost]) => html` + ${cost} × <code>${field}</code>`)}`;
