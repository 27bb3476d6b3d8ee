import { useClient } from "@parley/client/react";
import { type RefObject, useEffect, useLayoutEffect, useRef, useState } from "react";
import { useChatContext } from "../context.ts";
import type { Writing } from "./writing.ts";

export interface ComposerText {
  text: string;
  caret: number;
  /** Stores what was typed. */
  change: (text: string, caret: number) => void;
  /** Replaces the text, moves the caret and focuses the field. */
  replace: (text: string, caret: number) => void;
  moveCaret: (caret: number) => void;
  /** Puts a text in front of the draft. */
  prependToDraft: (text: string) => void;
}

/** The text of the composer: the draft of the conversation, or the message that is being edited. */
export function useComposerText(
  area: RefObject<HTMLTextAreaElement | null>,
  writing: Writing,
): ComposerText {
  const { chat } = useChatContext();
  const { model } = useClient();
  const draft = () => model.get(`draft:${chat.id}`);
  const [text, setText] = useState(draft);
  const [caret, setCaret] = useState(0);
  /** Where to put the caret after the next text is rendered. */
  const nextCaret = useRef<number | null>(null);
  const [kind, setKind] = useState(writing.kind);
  // While rendering, so that no effect takes the edited text for the draft.
  if (kind !== writing.kind) {
    setKind(writing.kind);
    if (kind === "edit") {
      setText(draft());
      setCaret(draft().length);
    }
  }

  useEffect(() => {
    if (writing.kind === "edit") setText(writing.refused?.content ?? writing.message.content);
    if (writing.kind !== "new") area.current?.focus();
  }, [writing, area]);

  const isEdit = writing.kind === "edit";
  useEffect(() => {
    if (isEdit) return;
    // Another tab may change the draft, or send it.
    return model.watch(`draft:${chat.id}`, () => setText(model.get(`draft:${chat.id}`)));
  }, [model, chat.id, isEdit]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: height and caret follow the text
  useLayoutEffect(() => {
    const field = area.current;
    if (!field) return;
    field.style.height = "auto";
    field.style.height = `${field.scrollHeight}px`;
    if (nextCaret.current === null) return;
    field.focus();
    field.setSelectionRange(nextCaret.current, nextCaret.current);
    nextCaret.current = null;
  }, [text]);

  const change = (next: string, at: number) => {
    setText(next);
    setCaret(at);
    if (isEdit) return;
    model.setDraft(chat.id, next);
    if (next.trim() !== "") model.typing(chat.id);
  };

  return {
    text,
    caret,
    change,
    replace(next, at) {
      nextCaret.current = at;
      change(next, at);
    },
    moveCaret: setCaret,
    prependToDraft(added) {
      const next = draft() === "" ? added : `${added}\n\n${draft()}`;
      nextCaret.current = added.length;
      setText(next);
      model.setDraft(chat.id, next);
    },
  };
}
