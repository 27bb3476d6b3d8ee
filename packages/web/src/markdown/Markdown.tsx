import { memo, type ReactNode } from "react";
import { Icon } from "../ui/Icon.tsx";
import { CodeBlock } from "./CodeBlock.tsx";
import { closeOpenMarks } from "./close-marks.ts";
import { Inline } from "./Inline.tsx";
import { type Block as BlockNode, parseMarkdown } from "./parse.ts";

interface MarkdownProps {
  text: string;
  /** More text will follow. */
  streaming?: boolean;
}

/** Renders Markdown as React elements; HTML in it stays text. */
export const Markdown = memo(function Markdown({ text, streaming = false }: MarkdownProps) {
  const blocks = parseMarkdown(streaming ? closeOpenMarks(text) : text);
  if (blocks === null) return <PlainText text={text} />;
  return (
    <div className={`prose ${streaming ? "streaming" : ""}`}>
      <Blocks tokens={blocks} />
    </div>
  );
});

/** Text without Markdown, for what cannot be rendered as Markdown. */
export const PlainText = ({ text }: { text: string }) => (
  <p dir="auto" className="prose whitespace-pre-wrap">
    {text}
  </p>
);

/** Blocks that have not changed are not rendered again while a later block grows. */
const Block = memo(BlockView, (before, after) => before.token.raw === after.token.raw);

function BlockView({ token }: { token: BlockNode }): ReactNode {
  switch (token.type) {
    case "heading":
      return <Heading token={token} />;
    case "paragraph":
      return (
        <p dir="auto">
          <Inline tokens={token.tokens} />
        </p>
      );
    case "text":
      return <Inline tokens={token.tokens} />;
    case "code":
      return <CodeBlock code={token.text} language={token.lang} />;
    case "blockquote":
      return (
        <blockquote dir="auto">
          <Blocks tokens={token.tokens} />
        </blockquote>
      );
    case "list":
      return <List token={token} />;
    case "table":
      return <Table token={token} />;
    case "hr":
      return <hr />;
  }
}

function Blocks({ tokens }: { tokens: BlockNode[] }) {
  return tokens.map((token, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: text grows at its end, so places are stable
    <Block key={index} token={token} />
  ));
}

const headingLooks = ["text-lg", "text-md", "text-base"];

/** All levels are `h3`, because the headings of the page are above those of a message. */
function Heading({ token }: { token: Extract<BlockNode, { type: "heading" }> }) {
  return (
    <h3 dir="auto" className={headingLooks[token.depth - 1] ?? "text-base"}>
      <Inline tokens={token.tokens} />
    </h3>
  );
}

function List({ token }: { token: Extract<BlockNode, { type: "list" }> }) {
  const items = token.items.map((item, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: text grows at its end, so places are stable
    <li key={index} className={item.task ? "task" : undefined}>
      {item.task && <TaskBox done={item.checked} />}
      <Blocks tokens={item.tokens} />
    </li>
  ));
  if (!token.ordered) return <ul dir="auto">{items}</ul>;
  return (
    <ol dir="auto" start={token.start}>
      {items}
    </ol>
  );
}

function TaskBox({ done }: { done: boolean }) {
  return (
    <span
      role="img"
      aria-label={done ? "Done" : "Not done"}
      className={`task-box ${done ? "bg-ink-2 text-canvas" : "border border-edge"}`}
    >
      {done && <Icon name="check" size={12} />}
    </span>
  );
}

const columnLooks = { left: "text-left", center: "text-center", right: "text-right" };

function Table({ token }: { token: Extract<BlockNode, { type: "table" }> }) {
  const look = (column: number) => {
    const side = token.align[column];
    return side ? columnLooks[side] : undefined;
  };
  return (
    <section
      dir="auto"
      className="overflow-x-auto rounded-md border border-ink/15"
      aria-label="Table"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a wide table is scrolled by keyboard too
      tabIndex={0}
    >
      <table className="w-full">
        <thead className="bg-chip">
          <tr>
            {token.header.map((cell, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: columns have no other name
              <th key={index} scope="col" className={look(index)}>
                <Inline tokens={cell} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {token.rows.map((row, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: rows have no other name
            <tr key={index}>
              {row.map((cell, column) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: columns have no other name
                <td key={column} className={look(column)}>
                  <Inline tokens={cell} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
