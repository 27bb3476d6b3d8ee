import { useClient } from "@parley/client/react";
import type { FormBlock } from "@parley/protocol/markup";
import { use, useState } from "react";
import { ActionTarget } from "./action-target.ts";

interface FormDraft {
  /** What was typed when the form was last shown, by the names of the fields. */
  initial: Readonly<Record<string, string>>;
  keep: (element: HTMLFormElement) => void;
  clear: () => void;
}

/**
 * What was typed into a form and not sent yet. It lives beside the drafts of messages, in the model:
 * the form itself leaves the page when it is scrolled out of sight.
 */
export function useFormDraft(form: FormBlock): FormDraft {
  const { model } = useClient();
  const target = use(ActionTarget);
  // In a name of the model, a colon ends the kind of the piece.
  const key = `form-${target?.messageId}-${encodeURIComponent(form.id)}`;
  const [initial] = useState(() => parsed(model.get(`draft:${key}`)));
  return {
    initial,
    keep: (element) => model.setDraft(key, JSON.stringify(filledIn(element))),
    clear: () => model.setDraft(key, ""),
  };
}

function filledIn(element: HTMLFormElement): Record<string, string> {
  const filled = [...new FormData(element)].filter(([, value]) => value !== "");
  return Object.fromEntries(filled.map(([name, value]) => [name, String(value)]));
}

/** Whatever else may stand in the storage is no draft of a form. */
function parsed(draft: string): Record<string, string> {
  try {
    const fields: unknown = JSON.parse(draft || "{}");
    if (typeof fields !== "object" || fields === null) return {};
    return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, String(value)]));
  } catch {
    return {};
  }
}
