import {
  type CallExpression,
  type Comment,
  type Expression,
  type MemberExpression,
  type ObjectPattern,
  type Program,
  parseSync,
  Visitor,
  type VisitorObject,
} from "oxc-parser";

/** Facts about a source file, read from its syntax tree. */

export interface Import {
  specifier: string;
  /** A `url` names a file that another thread or a reader loads. */
  kind: "module" | "url";
}

export interface Parsed {
  text: string;
  program: Program;
  comments: Comment[];
}

/** The syntax tree of a source, and its comments. Throws if the source does not parse. */
export function parse(text: string, file = "source.ts"): Parsed {
  const { program, comments, errors } = parseSync(file, text);
  if (errors.length > 0) throw new Error(`${file}: ${errors[0]?.message}`);
  return { text, program, comments };
}

const visit = (program: Program, visitor: VisitorObject) => new Visitor(visitor).visit(program);

/** Every import in source order: statements, calls, types, and URLs relative to the module. */
export function importsOf(program: Program): Import[] {
  const found: (Import & { start: number })[] = [];
  const add = (start: number, specifier: string | null, kind: Import["kind"] = "module") => {
    if (specifier !== null) found.push({ start, specifier, kind });
  };
  visit(program, {
    ImportDeclaration: ({ start, source }) => add(start, source.value),
    ExportNamedDeclaration: ({ start, source }) => add(start, source?.value ?? null),
    ExportAllDeclaration: ({ start, source }) => add(start, source.value),
    ImportExpression: ({ start, source }) => add(start, textOf(source)),
    TSImportType: ({ start, source }) => add(start, source.value),
    TSExternalModuleReference: ({ start, expression }) => add(start, expression.value),
    CallExpression: ({ start, callee, arguments: [first] }) => {
      if (isNamed(callee, "require") && first) add(start, textOf(first));
    },
    NewExpression: ({ start, callee, arguments: [first, base] }) => {
      if (isNamed(callee, "URL") && first && base) add(start, textOf(first), "url");
    },
  });
  return found
    .toSorted((one, other) => one.start - other.start)
    .map(({ specifier, kind }) => ({ specifier, kind }));
}

/** Whether the program takes a property of this name from any object. */
export function readsProperty(program: Program, name: string): boolean {
  let isRead = false;
  visit(program, {
    MemberExpression: (node) => {
      if (propertyOf(node) === name) isRead = true;
    },
    ObjectPattern: (pattern) => {
      if (takes(pattern, name)) isRead = true;
    },
  });
  return isRead;
}

/** Whether the program reads environment variables, in any of the ways that the runtime offers. */
export function readsEnvironment(program: Program): boolean {
  let isRead = importsOf(program).some(({ specifier }) => /^(node:)?process$/.test(specifier));
  visit(program, {
    MemberExpression: (node) => {
      if (propertyOf(node) === "env" && hasEnvironment(node.object)) isRead = true;
    },
    VariableDeclarator: ({ id, init }) => {
      if (id.type === "ObjectPattern" && takes(id, "env") && hasEnvironment(init)) isRead = true;
    },
  });
  return isRead;
}

/** `process`, `Bun` and `import.meta`, also as properties of the global object. */
function hasEnvironment(node: Expression | null): boolean {
  if (node?.type === "MetaProperty") return true;
  if (node?.type === "MemberExpression") return /^(process|Bun)$/.test(propertyOf(node) ?? "");
  return isNamed(node, "process") || isNamed(node, "Bun");
}

export const lineOf = (offset: number, text: string) => text.slice(0, offset).split("\n").length;

/** The lines of `catch` clauses that do nothing with the error: empty, or with only a comment in them. */
export function emptyCatches({ program, text }: Parsed): number[] {
  const lines: number[] = [];
  visit(program, {
    CatchClause: ({ start, body }) => {
      if (body.body.length === 0) lines.push(lineOf(start, text));
    },
  });
  return lines;
}

/** The import circles of a graph, each as the path that leads back to its first file. */
export function circlesIn(graph: ReadonlyMap<string, readonly string[]>): string[][] {
  const circles: string[][] = [];
  const finished = new Set<string>();
  const walk = (file: string, path: readonly string[]) => {
    const start = path.indexOf(file);
    if (start >= 0) return void circles.push([...path.slice(start), file]);
    if (finished.has(file)) return;
    for (const target of graph.get(file) ?? []) walk(target, [...path, file]);
    finished.add(file);
  };
  for (const file of graph.keys()) walk(file, []);
  return circles;
}

/** String methods whose result depends on the words of a text. */
const READS_WORDS =
  /^(at|charAt|endsWith|includes|indexOf|lastIndexOf|match|matchAll|replace|replaceAll|search|slice|split|startsWith|substring)$/;
const ERROR_NAME = /(^|[a-z])(error|failure|problem|refusal|refused|thrown|cause)$/i;
const SENTENCE_NAME = /^(message|reason|description|failure)$/;

/**
 * The lines in which a program reads the words of an error's sentence: searches it, takes it apart, or
 * compares it with a constant.
 */
export function readsSentences({ program, text }: Parsed): number[] {
  const lines = new Set<number>();
  const add = (start: number) => lines.add(lineOf(start, text));
  visit(program, {
    CallExpression: ({ start, callee, arguments: given }) => {
      if (callee.type !== "MemberExpression") return;
      const method = propertyOf(callee) ?? "";
      if (READS_WORDS.test(method) && isSentence(callee.object)) add(start);
      const isPattern = method === "test" || method === "exec";
      if (isPattern && given[0] && isSentence(given[0])) add(start);
    },
    BinaryExpression: ({ start, operator, left, right }) => {
      if (!/^[!=]==?$/.test(operator)) return;
      if ((isSentence(left) && isText(right)) || (isText(left) && isSentence(right))) add(start);
    },
  });
  return [...lines];
}

/** A string, or a constant in capitals. */
const isText = (node: Node) =>
  textOf(node) !== null ||
  (node.type === "Identifier" && /^[A-Z_]+$/.test((node as { name?: string }).name ?? ""));

/** `error.message`, the `failure` of a message, `String(error)`, and what describes an error. */
function isSentence(node: Node): boolean {
  const { expression, left } = node as { expression?: Node; left?: Node };
  if (expression) return isSentence(expression);
  if (node.type === "LogicalExpression" && left) return isSentence(left);
  if (node.type === "MemberExpression") {
    const member = node as MemberExpression;
    const name = propertyOf(member) ?? "";
    return name === "failure" || (SENTENCE_NAME.test(name) && isError(member.object));
  }
  if (node.type === "CallExpression") {
    const { callee, arguments: given } = node as CallExpression;
    const [first] = given;
    if (isNamed(callee, "String"))
      return first !== undefined && (isError(first) || isSentence(first));
    return callee.type === "Identifier" && /^describe(Error|Facts|Problem)$/.test(callee.name);
  }
  return isNamed(node, "failure");
}

/** A value that is named like an error, also as a property: `result.error`. */
function isError(node: Node): boolean {
  const { expression } = node as { expression?: Node };
  if (expression) return isError(expression);
  const name =
    node.type === "MemberExpression"
      ? propertyOf(node as MemberExpression)
      : (node as { name?: string }).name;
  return ERROR_NAME.test(name ?? "");
}

type Node = { type: string };

const isNamed = (node: Node | null, name: string) =>
  node?.type === "Identifier" && (node as { name?: string }).name === name;

/** The text of a string, or of a template without expressions. */
function textOf(node: Node): string | null {
  const { value, quasis } = node as { value?: unknown; quasis?: { value: { cooked: string } }[] };
  if (node.type === "Literal" && typeof value === "string") return value;
  return node.type === "TemplateLiteral" && quasis?.length === 1
    ? (quasis[0]?.value.cooked ?? null)
    : null;
}

/** The name of the property that a member expression or a pattern takes, if it is written there. */
export function propertyOf({
  property,
  computed,
}: {
  property: Node;
  computed: boolean;
}): string | null {
  if (computed) return textOf(property);
  return (property as { name?: string }).name ?? textOf(property);
}

const takes = ({ properties }: ObjectPattern, name: string) =>
  properties.some(
    (each) =>
      each.type === "Property" &&
      propertyOf({ property: each.key, computed: each.computed }) === name,
  );
