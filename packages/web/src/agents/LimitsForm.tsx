import { useClient } from "@parley/client/react";
import type { AgentProfile } from "@parley/protocol";
import { type FormEvent, useState } from "react";
import { useAction } from "../lib/action.ts";
import { Choice } from "../ui/Choice.tsx";
import { TextField } from "../ui/Field.tsx";
import { SaveRow } from "./SaveRow.tsx";

const spenders = [
  {
    value: "owner",
    label: "Only me",
    hint: "It answers your messages alone.",
  },
  {
    value: "participants",
    label: "Everyone in the conversation",
    hint: "It answers whoever writes where you have brought it, at your expense.",
  },
] as const;

const figures = [
  ["daily_tokens", "Tokens a day"],
  ["chat_daily_tokens", "Tokens a day in each conversation"],
  ["turns_per_minute", "Answers a minute"],
] as const;

/** Who may spend the key, and how much of it. */
export function LimitsForm({ agent }: { agent: AgentProfile }) {
  const client = useClient();
  const action = useAction();
  const [who, setWho] = useState(agent.limits.spenders);
  const save = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const data = new FormData(event.currentTarget);
    const figure = (name: string) => {
      const text = String(data.get(name) ?? "").trim();
      return text === "" ? null : Number(text);
    };
    void action.run(async () => {
      await client.setAgentLimits({
        provider: agent.provider,
        spenders: who,
        daily_tokens: figure("daily_tokens"),
        chat_daily_tokens: figure("chat_daily_tokens"),
        turns_per_minute: figure("turns_per_minute"),
      });
      await client.model.refreshAgents();
    });
  };
  return (
    <form onSubmit={save} className="flex flex-col gap-4">
      <Choice label="Who may use it" value={who} options={spenders} onChange={setWho} />
      <div className="grid items-end gap-4 sm:grid-cols-3">
        {figures.map(([name, label]) => (
          <TextField
            key={name}
            label={label}
            name={name}
            type="number"
            min={0}
            step={1}
            placeholder="No limit"
            defaultValue={agent.limits[name] ?? ""}
          />
        ))}
      </div>
      <SaveRow {...action} />
    </form>
  );
}
