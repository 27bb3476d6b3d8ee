import type { Block } from "@parley/protocol/markup";
import { parseMarkup } from "@parley/protocol/markup";
import { memo } from "react";
import { ActionButton, FormView } from "./components.tsx";
import { Markdown } from "./Markdown.tsx";

interface ContentProps {
  text: string;
  streaming: boolean;
}

/** A message's content: Markdown, and the components that stand in it. */
export const Content = memo(function Content({ text, streaming }: ContentProps) {
  const blocks = parseMarkup(text, { streaming });
  return (
    <div className="flex min-w-0 flex-col gap-2.5">
      <BlockList blocks={blocks} streaming={streaming} />
      {blocks.length === 0 && streaming && <div className="prose streaming" />}
    </div>
  );
});

function BlockList({ blocks, streaming }: { blocks: Block[]; streaming: boolean }) {
  const groups = grouped(blocks);
  return groups.map((group, index) => {
    const last = index === groups.length - 1;
    const key = `${index}`;
    if (Array.isArray(group)) return <ButtonRow key={key} buttons={group} />;
    if (group.type === "markdown")
      return <Markdown key={key} text={group.text} streaming={streaming && last} />;
    if (group.type === "form") return <FormView key={key} form={group} />;
    if (group.type === "card") return <Card key={key} card={group} />;
    return null;
  });
}

type ButtonBlock = Extract<Block, { type: "button" }>;

/** Buttons that follow one another share a row. */
function grouped(blocks: Block[]): (Exclude<Block, ButtonBlock> | ButtonBlock[])[] {
  const groups: (Exclude<Block, ButtonBlock> | ButtonBlock[])[] = [];
  for (const block of blocks) {
    const last = groups.at(-1);
    if (block.type !== "button") groups.push(block);
    else if (Array.isArray(last)) last.push(block);
    else groups.push([block]);
  }
  return groups;
}

function ButtonRow({ buttons }: { buttons: ButtonBlock[] }) {
  return (
    <div className="flex flex-wrap items-start gap-2">
      {buttons.map(({ action, label }, index) => (
        <ActionButton
          key={`${action}-${label}`}
          action={action}
          label={label}
          first={index === 0}
        />
      ))}
    </div>
  );
}

function Card({ card }: { card: Extract<Block, { type: "card" }> }) {
  return (
    <section
      aria-label={card.title || "Card"}
      className="w-full max-w-md overflow-hidden rounded-lg border border-line bg-surface text-ink shadow-low"
    >
      {card.title && (
        <h3 className="border-b border-line px-4 py-2.5 text-md font-semibold tracking-tight">
          {card.title}
        </h3>
      )}
      <div className="flex flex-col gap-3 px-4 py-3">
        <BlockList blocks={card.children} streaming={false} />
      </div>
    </section>
  );
}
