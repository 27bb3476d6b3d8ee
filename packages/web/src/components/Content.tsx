import type { Block } from "@parley/protocol/markup";
import { parseMarkup } from "@parley/protocol/markup";
import { memo } from "react";
import { Markdown } from "../markdown/Markdown.tsx";
import { ButtonRow } from "./ButtonRow.tsx";
import { inRows } from "./button-rows.ts";
import { Card } from "./Card.tsx";
import { FormView } from "./FormView.tsx";

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
    if (row.type === "card")
      return (
        <Card key={key} card={row}>
          <BlockList blocks={row.children} streaming={false} inCard />
        </Card>
      );
    return null;
  });
}
