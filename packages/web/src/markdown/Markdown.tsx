import { marked, type Token, type Tokens } from "marked";
import { memo, type ReactNode } from "react";
import { CodeBlock } from "./CodeBlock.tsx";
import { Inline } from "./Inline.tsx";
import { settle } from "./settle.ts";

interface MarkdownProps {
  text: string;
  /** The text is still growing. */
  streaming?: boolean;
}

/** Markdown as elements: what a message brings is only ever text, never HTML. */
export const Markdown = memo(function Markdown({ text, streaming = false }: MarkdownProps) {
  const tokens = marked.lexer(streaming ? settle(text) : text, { gfm: true, breaks: true });
  const shown = tokens.filter(({ type }) => type !== "space" && type !== "def");
  return (
    <div className={`prose ${streaming ? "streaming" : ""}`}>
      {shown.map((token, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: text grows at its end, so places are stable
        <Block key={index} token={token} />
      ))}
    </div>
  );
});

/** A paragraph that has not changed is not rendered again while those after it grow. */
const Block = memo(BlockView, (before, after) => before.token.raw === after.token.raw);

function BlockView({ token }: { token: Token }): ReactNode {
  switch (token.type) {
    case "heading":
      return <Heading token={token as Tokens.Heading} />;
    case "paragraph":
      return (
        <p dir="auto">
          <Inline tokens={(token as Tokens.Paragraph).tokens} />
        </p>
      );
    case "code":
      return (
        <CodeBlock code={(token as Tokens.Code).text} language={(token as Tokens.Code).lang} />
      );
    case "blockquote":
      return (
        <blockquote dir="auto">
          <Blocks tokens={(token as Tokens.Blockquote).tokens} />
        </blockquote>
      );
    case "list":
      return <List token={token as Tokens.List} />;
    case "table":
      return <Table token={token as Tokens.Table} />;
    case "hr":
      return <hr />;
    case "text": {
      const { tokens, text } = token as Tokens.Text;
      return tokens ? <Inline tokens={tokens} /> : text;
    }
    case "space":
    case "def":
      return null;
    default:
      return (
        <p dir="auto" className="whitespace-pre-wrap">
          {token.raw.trimEnd()}
        </p>
      );
  }
}

function Blocks({ tokens }: { tokens: Token[] }) {
  return tokens.map((token, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: text grows at its end, so places are stable
    <Block key={index} token={token} />
  ));
}

const headingLooks = ["text-lg", "text-md", "text-base"];

/** Whatever level an author chooses, in the page it is a heading inside of a message. */
function Heading({ token }: { token: Tokens.Heading }) {
  return (
    <h3 dir="auto" className={headingLooks[token.depth - 1] ?? "text-base"}>
      <Inline tokens={token.tokens} />
    </h3>
  );
}

function List({ token }: { token: Tokens.List }) {
  const items = token.items.map((item, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: text grows at its end, so places are stable
    <li key={index}>
      {item.task && (
        <input
          type="checkbox"
          checked={item.checked === true}
          disabled
          aria-label={item.checked ? "Done" : "Not done"}
          className="me-1.5"
        />
      )}
      <Blocks tokens={item.tokens.filter(({ type }) => type !== "checkbox")} />
    </li>
  ));
  if (!token.ordered) return <ul dir="auto">{items}</ul>;
  return (
    <ol dir="auto" start={token.start === "" ? 1 : token.start}>
      {items}
    </ol>
  );
}

const columnLooks = { left: "text-left", center: "text-center", right: "text-right" };

function Table({ token }: { token: Tokens.Table }) {
  const look = (column: number) => {
    const side = token.align[column];
    return side ? columnLooks[side] : undefined;
  };
  return (
    <section
      dir="auto"
      className="overflow-x-auto rounded-md border border-line"
      aria-label="Table"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a wide table is scrolled by keyboard too
      tabIndex={0}
    >
      <table className="w-full">
        <thead className="bg-sunken">
          <tr>
            {token.header.map((cell, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: columns have no other name
              <th key={index} scope="col" className={look(index)}>
                <Inline tokens={cell.tokens} />
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
                  <Inline tokens={cell.tokens} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
