import type { AgentProfile } from "@parley/protocol";
import { useState } from "react";
import { CardSection } from "../agents/CardSection.tsx";
import { count, nameOf } from "../lib/names.ts";
import { Button } from "../ui/Button.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { Icon } from "../ui/Icon.tsx";
import { AgentTools } from "./AgentTools.tsx";

/** How many tools an agent may use, and a button to choose them. */
export function ToolsSection({ agent }: { agent: AgentProfile }) {
  const [isOpen, setOpen] = useState(false);
  const changed = agent.tools.filter((grant) => grant.changed).length;
  return (
    <CardSection
      title="Tools"
      action={
        <Button size="small" icon="tool" onClick={() => setOpen(true)}>
          Choose tools
        </Button>
      }
    >
      <p className="text-base text-ink-2">{summary(agent)}</p>
      {changed > 0 && (
        <p className="flex items-start gap-1.5 text-sm text-warn">
          <span className="mt-0.5">
            <Icon name="alert" size={15} />
          </span>
          {count(changed, "tool")} changed since you allowed {changed === 1 ? "it" : "them"}: asks
          again.
        </p>
      )}
      {isOpen && (
        <Dialog
          title={`Tools of ${nameOf({ ...agent, kind: "agent" })}`}
          wide
          onClose={() => setOpen(false)}
        >
          <div className="min-h-0 overflow-y-auto px-5 pt-1 pb-5">
            <AgentTools agent={agent} />
          </div>
        </Dialog>
      )}
    </CardSection>
  );
}

function summary({ tools }: AgentProfile): string {
  if (tools.length === 0)
    return "It searches and reads the conversation it is in, and knows the time. Nothing else.";
  const asking = tools.filter(({ policy, changed }) => policy === "ask" || changed).length;
  const allowed = `It may use ${count(tools.length, "tool")}`;
  if (asking === 0) return `${allowed}.`;
  return `${allowed}, and asks you first for ${asking === tools.length ? "every call" : `${asking} of them`}.`;
}
