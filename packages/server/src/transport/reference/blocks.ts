import { type Delivery, type EventContract, errorStatus, type Operation } from "@parley/protocol";
import { mayReturnNothing, ownErrors } from "./contract.ts";
import { answerExample, eventExample, exampleOf, frameExample, inputExample } from "./examples.ts";
import { shape } from "./fields.ts";
import { errorLink, example, pretty, render } from "./markdown.ts";
import { policyMeaning, SENSITIVE, throttleMeaning } from "./prose.ts";
import type { Schema, SchemaBook } from "./schemas.ts";

/** An entry of the page: its text, and beside it examples. */
export const entry = (
  name: string,
  text: string,
  examples: string,
  id = name,
) => `<article class="entry" id="${id}">
<div>${render(`### [${name}](#${id})\n\n${text}`)}</div>
<div class="examples">${render(examples)}</div>
</article>
`;

/** The entry of an operation: names, input, result, errors and examples. */
export function operationBlock(operation: Operation, book: SchemaBook): string {
  const { name, socket, summary, access, agents, policy, sensitive, throttles } = operation;
  const input = book.input(operation.input);
  const output = operation.output && book.output(operation.output);
  const levels = [access, ...(agents ? ["agent"] : [])].map((level) => `[${level}](#access)`);
  const names = [`**POST** /api/${name}`, ...(access === "service" ? [] : [`\`${socket}\``])];
  const text = [
    `${names.join(" · ")} · access: ${levels.join(", ")} · cost: ${costOf(operation)}`,
    summary,
    policy && policyMeaning(policy),
    sensitive && SENSITIVE,
    ...throttles.map(throttleMeaning),
    "#### Input",
    hasFields(input) ? shape(input, "required") : "None.",
    "#### Result",
    result(output, mayReturnNothing(operation)),
    "#### Errors",
    errors(operation),
  ];
  const examples = operationExamples(operation, input, output, book);
  return entry(name, text.filter(Boolean).join("\n\n"), examples);
}

export function eventBlock(name: string, event: EventContract, book: SchemaBook): string {
  const { params, delivery, summary } = event;
  const frame = eventExample([name, event], book);
  const fields = shape(book.output(params), "optional");
  const text = `${deliveryNames[delivery]}\n\n${summary}\n\n#### Params\n\n${fields}`;
  return entry(name, text, frame ? example("Frame", frame) : "");
}

export function recordBlock(name: string, book: SchemaBook): string {
  const schema = book.shared[name] ?? {};
  return entry(name, shape(schema, "optional"), example("Example", exampleOf(schema, book.shared)));
}

const deliveryNames: Record<Delivery, string> = {
  counted: "Delivery: counted; `at` has the new value.",
  standing: "Delivery: `at` has the counter as it stands.",
  durable: "Delivery: stored, without `at`.",
  transient: "Delivery: not stored, without `at`.",
};

const hasFields = ({ properties }: Schema) => !properties || Object.keys(properties).length > 0;

function result(output: Schema | null, optional: boolean): string {
  if (!output) return 'None: success is `{ "ok": true }`.';
  const fields = shape(output, "optional");
  return optional ? `${fields}\n\nOr none: success is then \`{ "ok": true }\`.` : fields;
}

function errors(operation: Operation): string {
  const own = ownErrors(operation).toSorted((a, b) => errorStatus[a] - errorStatus[b]);
  return [...own.map(errorLink), "[those of every operation](#errors)"].join(" · ");
}

function operationExamples(
  operation: Operation,
  input: Schema,
  output: Schema | null,
  book: SchemaBook,
): string {
  const sent = inputExample(operation, input, book.shared);
  const answer = answerExample(operation, output, book.shared);
  const parts = [
    sent && `#### HTTP\n\n\`\`\`sh\n${curl(operation, sent)}\n\`\`\``,
    sent && operation.access !== "service" && example("Socket", frameExample(operation, sent, 1)),
    answer && example("Answer", answer),
  ];
  return parts.filter(Boolean).join("\n\n");
}

/** The call as a curl command, for a shell in which `PARLEY` and `TOKEN` are set. */
function curl({ name, access }: Operation, body: object): string {
  const hasBody = Object.keys(body).length > 0;
  const lines = [`curl ${hasBody ? "" : "-X POST "}"$PARLEY/api/${name}"`];
  if (access !== "public") lines.push('-H "authorization: Bearer $TOKEN"');
  if (hasBody) {
    lines.push('-H "content-type: application/json"');
    lines.push(`-d '${pretty(body).replaceAll("'", "'\\''").replaceAll("\n", "\n  ")}'`);
  }
  return lines.join(" \\\n  ");
}

/** What a call costs, in units of a plain call. */
const costOf = ({ cost: { call, each = {} } }: Operation) =>
  [call, ...Object.entries(each).map(([field, cost]) => `${cost} × \`${field}\``)].join(" + ");
