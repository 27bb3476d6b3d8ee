import type { Block } from "@parley/protocol/markup";
import { type ReactNode, use } from "react";
import { decidedCall } from "../tools/calls.ts";
import { AskedCalls, useUses } from "./action-target.ts";
import { Collapsible, type Labels } from "./Uses.tsx";

type CardBlock = Extract<Block, { type: "card" }>;

interface CardProps {
  card: CardBlock;
  children: ReactNode;
}

/** A card. One whose buttons decide about a tool call is left out: the call has a card of its own. */
export function Card({ card, children }: CardProps) {
  const labels = labelsOf(card.children);
  const uses = useUses([...labels.keys()]);
  const calls = use(AskedCalls);
  if ([...labels.keys()].some((token) => calls.includes(decidedCall(token) ?? ""))) return null;
  return (
    <Collapsible label={card.title || "Card"} title={card.title} uses={uses} labels={labels}>
      {children}
    </Collapsible>
  );
}

/** The labels of the components in a card, by token. */
function labelsOf(blocks: Block[]): Labels {
  const labels = new Map<string, string>();
  for (const block of blocks) {
    if (block.type === "button") labels.set(block.action, block.label);
    if (block.type === "form") labels.set(`form_submit:${block.id}`, "Submitted");
  }
  return labels;
}
