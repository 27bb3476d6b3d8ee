import { useClient } from "@parley/client/react";
import type { FormBlock } from "@parley/protocol/markup";
import { use, useState } from "react";
import { ActionTarget } from "./action-target.ts";

interface FormDraft {
  /** The kept values by field name, as of when the form was rendered first; null if nothing was typed. */
  initial: Readonly<Record<string, string>> | null;
  keep: (element: HTMLFormElement) => void;
  clear: () => void;
}

/**
 * The draft of a form. The model keeps it with the drafts of messages, because a form is unmounted when
 * it is scrolled out of view.
 */
export function useFormDraft(form: FormBlock): FormDraft {
  const { model } = useClient();
  const target = use(ActionTarget);
  // Keys of the model have the form `kind:id`, so the id must not contain a colon.
  const key = `form-${target?.messageId}-${encodeURIComponent(form.id)}`;
  const [initial] = useState(() => parseDraft(model.get(`draft:${key}`)));
  return {
    initial,
    keep: (element) => model.setDraft(key, JSON.stringify(filledFields(element))),
    clear: () => model.setDraft(key, ""),
  };
}

function filledFields(element: HTMLFormElement): Record<string, string> {
  const filled = [...new FormData(element)].filter(([, value]) => value !== "");
  return Object.fromEntries(filled.map(([name, value]) => [name, String(value)]));
}

/** The values of a stored draft; null if there is none that can be parsed. */
function parseDraft(draft: string): Record<string, string> | null {
  if (draft === "") return null;
  try {
    const fields: unknown = JSON.parse(draft);
    if (typeof fields !== "object" || fields === null) return null;
    return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, String(value)]));
  } catch {
    // Damaged.
    return null;
  }
}
