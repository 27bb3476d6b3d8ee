import { useClient } from "@parley/client/react";
import { useEffect, useSyncExternalStore } from "react";
import { codeOf, describeError } from "../../lib/errors.ts";
import { useSelf } from "../../lib/me.ts";
import { useChatContext } from "../context.ts";
import type { Writing } from "./writing.ts";

type Edit = Extract<Writing, { kind: "edit" }>;

/** Refused edits by account and conversation, oldest first, until the composer shows them. */
const refusedEdits = new Map<string, Edit[]>();
const listeners = new Set<() => void>();

/**
 * Returns a function that saves an edit. An edit that the server refuses opens in the composer again,
 * with its text and the reason, as soon as the composer is not used for a reply or another edit.
 */
export function useSaveEdit(
  writing: Writing,
  onWriting: (writing: Writing) => void,
): (edit: Edit, content: string) => void {
  const { model } = useClient();
  const { chat } = useChatContext();
  const key = `${useSelf().username} ${chat.id}`;
  const next = useSyncExternalStore(subscribe, () => refusedEdits.get(key)?.[0]);
  useEffect(() => {
    if (!next || writing.kind !== "new") return;
    setRefused(key, refusedEdits.get(key)?.filter((edit) => edit !== next) ?? []);
    onWriting(next);
  }, [key, next, writing, onWriting]);

  return ({ message }, content) => {
    model.edit(message.id, content).catch((error: unknown) => {
      const refused = { content, reason: reasonOf(error) };
      setRefused(key, [...(refusedEdits.get(key) ?? []), { kind: "edit", message, refused }]);
    });
  };
}

const reasonOf = (error: unknown) =>
  codeOf(error) === "not_found" ? "The message was deleted." : describeError(error);

function setRefused(key: string, edits: Edit[]): void {
  refusedEdits.set(key, edits);
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
