import type { AgentLimits } from "@parley/protocol";
import { useState } from "react";
import { Choice } from "../ui/Choice.tsx";
import { TextField } from "../ui/Field.tsx";
import type { FormValues } from "../ui/Form.tsx";

const spenders = [
  { value: "owner", label: "Only me", hint: "It answers your messages alone." },
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

/** Who may use the key, and how much of it. */
export function LimitFields({ limits }: { limits: AgentLimits }) {
  const [who, setWho] = useState(limits.spenders);
  return (
    <>
      <input type="hidden" name="spenders" value={who} />
      <Choice label="Who may ask it" value={who} options={spenders} onChange={setWho} />
      <div className="grid items-start gap-4 sm:grid-cols-2">
        {figures.map(([name, label]) => (
          <TextField
            key={name}
            label={label}
            name={name}
            type="number"
            inputMode="numeric"
            min={0}
            max={Number.MAX_SAFE_INTEGER}
            step={1}
            placeholder="No limit"
            defaultValue={limits[name] ?? ""}
          />
        ))}
        <TextField
          label="Messages that may wait for an answer"
          hint="Beyond this many, the last ones share an answer."
          name="waiting_turns"
          type="number"
          inputMode="numeric"
          min={1}
          max={100}
          step={1}
          required
          defaultValue={limits.waiting_turns}
        />
      </div>
    </>
  );
}

/** The limits that a form with these fields has. */
export function limitsIn({ text }: FormValues): AgentLimits {
  const figure = (name: string) => (text(name) === "" ? null : Number(text(name)));
  return {
    spenders: text("spenders") === "owner" ? "owner" : "participants",
    daily_tokens: figure("daily_tokens"),
    chat_daily_tokens: figure("chat_daily_tokens"),
    turns_per_minute: figure("turns_per_minute"),
    waiting_turns: Number(text("waiting_turns")),
  };
}
