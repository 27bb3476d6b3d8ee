import type { Account } from "@parley/protocol";
import { deceptiveNames } from "@parley/protocol/text/names";
import { type KeyboardEvent, useEffect, useState } from "react";
import { isCompositionKey } from "../lib/composition.ts";
import { useSelf } from "../lib/me.ts";
import { usePeopleSearch } from "./people-search.ts";

export interface PickerProps {
  chosen: Account[];
  onChange: (chosen: Account[]) => void;
  /** Usernames to leave out. */
  without?: readonly string[];
  /** Whether to offer agents too. */
  agents?: boolean;
}

/** The state of a people picker: the query, the offered accounts and the choice among them. */
export function usePicker({ chosen, onChange, without = [], agents = true }: PickerProps) {
  const me = useSelf();
  const [query, setQuery] = useState("");
  /** The index that the arrow keys moved to; null before that. */
  const [moved, setMoved] = useState<number | null>(null);
  /** Enter was pressed before the results for the query arrived. */
  const [entered, setEntered] = useState(false);
  const { query: answered, items: found, problem } = usePeopleSearch(query);
  const taken = new Set([me.username, ...without, ...chosen.map(({ username }) => username)]);
  const offered = (found ?? []).filter(
    ({ username, kind }) => !taken.has(username) && (agents || kind === "human"),
  );
  const confusable = deceptiveNames([me, ...chosen, ...(found ?? [])]);
  const isKnown = found !== null && answered === query;
  const isDone = query === "" && chosen.length > 0;
  const at = moved ?? (isDone ? -1 : 0);
  const active = isKnown ? offered[Math.min(at, offered.length - 1)] : undefined;

  const type = (text: string) => {
    setQuery(text);
    setMoved(null);
    setEntered(false);
  };
  const take = (account: Account) => {
    onChange([...chosen, account]);
    type("");
  };
  useEffect(() => {
    if (!entered || !isKnown) return;
    if (active) take(active);
    else setEntered(false);
  });
  const handleKey = (event: KeyboardEvent<HTMLInputElement>) => {
    if (isCompositionKey(event)) return;
    if (event.key === "ArrowDown") setMoved(Math.min(at + 1, offered.length - 1));
    else if (event.key === "ArrowUp") setMoved(Math.max(at - 1, 0));
    else if (event.key === "Enter" && active) take(active);
    else if (event.key === "Enter" && !isDone) setEntered(true);
    else if (event.key === "Backspace" && query === "") onChange(chosen.slice(0, -1));
    else return;
    if (event.key !== "Backspace") event.preventDefault();
  };
  return { query, offered, active, confusable, problem, isKnown, type, take, handleKey };
}
