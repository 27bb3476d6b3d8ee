import type { Block } from "@parley/protocol/markup";
import { parseMarkup } from "@parley/protocol/markup";
import { memo, use } from "react";
import { decidedCall } from "../tools/calls.ts";
import { answersTool } from "../tools/questions.ts";
import { AskedCalls, useUses } from "./action-target.ts";
import { inRows } from "./button-rows.ts";
import { ActionButton, FormView } from "./components.tsx";
import { Markdown } from "./Markdown.tsx";
import { Collapsible, type Labels, UseList } from "./Uses.tsx";

interface ContentProps {
  text: string;
  streaming: boolean;
}

/** The content of a message: Markdown and components. */
export const Content = memo(function Content({ text, streaming }: ContentProps) {
  const blocks = parseMarkup(text, { streaming });
  return (
    <div className="flex min-w-0 flex-col gap-2.5">
      <BlockList blocks={blocks} streaming={streaming} />
      {blocks.length === 0 && streaming && <div className="prose streaming" />}
    </div>
  );
});

interface BlockListProps {
  blocks: Block[];
  streaming: boolean;
  /** The surrounding card lists who used its buttons. */
  inCard?: boolean;
}

function BlockList({ blocks, streaming, inCard = false }: BlockListProps) {
  const rows = inRows(blocks);
  return rows.map((row, index) => {
    const last = index === rows.length - 1;
    const key = `${index}`;
    if (Array.isArray(row)) return <ButtonRow key={key} buttons={row} listsUses={!inCard} />;
    if (row.type === "markdown")
      return <Markdown key={key} text={row.text} streaming={streaming && last} />;
    if (row.type === "form") return <FormView key={key} form={row} />;
    if (row.type === "card") return <Card key={key} card={row} />;
    return null;
  });
}

type ButtonBlock = Extract<Block, { type: "button" }>;

function ButtonRow({ buttons, listsUses }: { buttons: ButtonBlock[]; listsUses: boolean }) {
  const labels = new Map(buttons.map(({ action, label }) => [action, label]));
  const uses = useUses([...labels.keys()]);
  return (
    <div className="flex flex-col gap-2">
      <div className="flex flex-wrap items-start gap-2">
        {buttons.map(({ action, label }, index) => (
          <ActionButton
            key={`${action}-${label}`}
            action={action}
            label={label}
            first={index === 0 && !answersTool(action)}
          />
        ))}
      </div>
      {listsUses && <UseList uses={uses} labels={labels} />}
    </div>
  );
}

function Card({ card }: { card: CardBlock }) {
  const labels = labelsOf(card.children);
  const uses = useUses([...labels.keys()]);
  const calls = use(AskedCalls);
  if ([...labels.keys()].some((token) => calls.includes(decidedCall(token) ?? ""))) return null;
  return (
    <Collapsible label={card.title || "Card"} title={card.title} uses={uses} labels={labels}>
      <BlockList blocks={card.children} streaming={false} inCard />
    </Collapsible>
  );
}

type CardBlock = Extract<Block, { type: "card" }>;

/** The labels of the components in a card, by token. */
function labelsOf(blocks: Block[]): Labels {
  const labels = new Map<string, string>();
  for (const block of blocks) {
    if (block.type === "button") labels.set(block.action, block.label);
    if (block.type === "form") labels.set(`form_submit:${block.id}`, "Submitted");
  }
  return labels;
}
