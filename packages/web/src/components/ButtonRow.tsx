import type { Block } from "@parley/protocol/markup";
import { answersTool } from "../tools/questions.ts";
import { ActionButton } from "./ActionButton.tsx";
import { useUses } from "./action-target.ts";
import { UseList } from "./Uses.tsx";

type ButtonBlock = Extract<Block, { type: "button" }>;

interface ButtonRowProps {
  buttons: ButtonBlock[];
  listsUses: boolean;
}

/** Buttons beside each other, and below them who pressed which. */
export function ButtonRow({ buttons, listsUses }: ButtonRowProps) {
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
