import { useClient, useStatus } from "@parley/client/react";
import { useEffect, useRef } from "react";
import { useSelf } from "./me.ts";
import { sharedValue } from "./shared-value.ts";

const KEY = "parley.new-groups";

/** The groups that the person was added to and has not opened on this device. */
const unopened = sharedValue<ReadonlySet<string>>(new Set(stored()));

export const useIsNewGroup = (id: string) => unopened.use().has(id);

export function markOpened(id: string): void {
  if (unopened.get().has(id)) store([...unopened.get()].filter((each) => each !== id));
}

export const forgetNewGroups = () => store([]);

/**
 * Notices groups that somebody else has started and that appear above the conversations that were
 * listed before: older ones are loaded below them.
 */
export function useNewGroups(ids: readonly string[]): void {
  const me = useSelf();
  const { model } = useClient();
  const isOnline = useStatus() === "online";
  const listed = useRef<readonly string[] | null>(null);
  useEffect(() => {
    const before = listed.current;
    if (before === null && ids.length === 0 && !isOnline) return;
    listed.current = ids;
    if (before === null) return;
    const known = new Set(before);
    const end = known.size === 0 ? ids.length : ids.findLastIndex((id) => known.has(id));
    const added = ids.slice(0, Math.max(end, 0)).filter((id) => {
      const chat = known.has(id) ? null : model.get(`chat:${id}`);
      return chat?.kind === "group" && chat.created_by.username !== me.username;
    });
    if (added.length > 0) store([...unopened.get(), ...added]);
  }, [ids, isOnline, me, model]);
}

function store(groups: readonly string[]): void {
  unopened.set(new Set(groups));
  localStorage.setItem(KEY, JSON.stringify(groups));
}

function stored(): string[] {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? "[]");
  } catch {
    // Damaged: nothing is marked as new.
    return [];
  }
}
