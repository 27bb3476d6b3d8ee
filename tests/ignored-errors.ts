import { type Comment, type Node, type Span, visitorKeys } from "oxc-parser";
import { lineOf, type Parsed, propertyOf } from "./source.ts";

/**
 * The lines of `catch` clauses and rejection handlers that ignore an error without a reason: they
 * neither read it, nor throw, nor return what a call makes of the failure. A reason is a comment in
 * the handler, on its line, or on the line above it or its statement.
 */
export function ignoredErrors({ program, text, comments }: Parsed): number[] {
  const lines: number[] = [];
  const reasons = comments.filter(({ value }) => !/^\s*biome-ignore/.test(value));
  walk(program, program, (node, statement) => {
    const handler = handlerIn(node);
    if (!handler || !ignoresError(handler)) return;
    const line = lineOf(handler.start, text);
    const places = [line, lineOf(statement.start, text) - 1];
    // The line above a clause belongs to the block that is tried.
    if (handler.type !== "CatchClause") places.push(line - 1);
    const isReason = (comment: Comment) =>
      isWithin(comment, handler) || places.includes(lineOf(comment.end, text));
    if (!reasons.some(isReason)) lines.push(line);
  });
  return lines;
}

const isWithin = (inner: Span, outer: Span) => inner.start > outer.start && inner.end < outer.end;

/** Visits every node, with the innermost statement or property that it is a part of. */
function walk(node: Node, outer: Node, visit: (node: Node, statement: Node) => void): void {
  const isStatement = /(?<!Block)Statement$|Declaration$|^Property/.test(node.type);
  const statement = isStatement ? node : outer;
  visit(node, statement);
  const fields = node as unknown as Record<string, Node | null | (Node | null)[]>;
  const children = (visitorKeys[node.type] ?? []).flatMap((key) => fields[key] ?? []);
  for (const child of children) if (child) walk(child, statement, visit);
}

type Handler = Extract<
  Node,
  { type: "CatchClause" | "ArrowFunctionExpression" | "FunctionExpression" }
>;

/** The `catch` clause, or the function that is given to `catch()` or as the second one to `then()`. */
function handlerIn(node: Node): Handler | null {
  if (node.type === "CatchClause") return node;
  if (node.type !== "CallExpression" || node.callee.type !== "MemberExpression") return null;
  const name = propertyOf(node.callee);
  const given = name === "catch" ? node.arguments[0] : name === "then" ? node.arguments[1] : null;
  return given && isFunction(given) ? given : null;
}

const isFunction = (node: Node): node is Handler =>
  node.type === "ArrowFunctionExpression" || node.type === "FunctionExpression";

function ignoresError(handler: Handler): boolean {
  const error = handler.type === "CatchClause" ? handler.param : handler.params[0];
  const isRead = error && !(error.type === "Identifier" && error.name.startsWith("_"));
  return !isRead && !handlesFailure(handler.body);
}

function handlesFailure(node: Node | null | undefined): boolean {
  switch (node?.type) {
    case "BlockStatement":
      return handlesFailure(node.body.at(-1));
    case "ReturnStatement":
    case "AwaitExpression":
      return handlesFailure(node.argument);
    case "ThrowStatement":
    case "CallExpression":
    case "NewExpression":
      return true;
    default:
      return false;
  }
}
