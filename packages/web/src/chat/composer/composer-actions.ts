import { useClient } from "@parley/client/react";
import type { Attachments } from "../../files/attachments.ts";
import { rememberCopies } from "../../files/local-copies.ts";
import { charactersLeft } from "../../lib/content-limit.ts";
import { useSelf } from "../../lib/me.ts";
import { useChatContext } from "../context.ts";
import { isTooLong } from "./Counter.tsx";
import type { ComposerText } from "./composer-text.ts";
import { unaddressed } from "./mention.ts";
import { useSaveEdit } from "./refused-edits.ts";
import type { Writing } from "./writing.ts";

interface ComposerActionsOptions {
  writing: Writing;
  onWriting: (writing: Writing) => void;
  onSent: () => void;
  field: ComposerText;
  attachments: Attachments;
}

interface ComposerActions {
  /** There is something to send or to save. */
  hasContent: boolean;
  /** Sends the message or saves the edit. */
  submit: () => void;
  /** Ends a reply or an edit. */
  cancel: () => void;
  /** Edits the last message that the person sent; false if none is loaded. */
  editLast: () => boolean;
  insert: (text: string) => void;
}

export function useComposerActions(options: ComposerActionsOptions): ComposerActions {
  const { writing, onWriting, onSent, field, attachments } = options;
  const { chat } = useChatContext();
  const me = useSelf();
  const { model } = useClient();
  const saveEdit = useSaveEdit(writing, onWriting);

  const cancel = () => {
    onWriting({ kind: "new" });
    if (writing.kind === "reply" && writing.message.sender.kind === "agent") {
      const rest = unaddressed(field.text, writing.message.sender.username);
      field.replace(rest, rest.length);
    }
  };

  const content = field.text.trim();
  const files = writing.kind === "edit" ? writing.message.files : attachments.items;
  const hasContent = content !== "" || files.length > 0;

  const submit = () => {
    if (!hasContent || isTooLong(charactersLeft(content))) return;
    if (writing.kind === "edit") {
      if (content !== writing.message.content) saveEdit(writing, content);
      return cancel();
    }
    const taken = attachments.take();
    const id = model.send(chat.id, content, {
      ...(writing.kind === "reply" && { replyTo: writing.message.id }),
      ...(taken.length > 0 && { files: taken.map(({ file }) => file) }),
    });
    if (taken.length > 0) rememberCopies(id, taken);
    onWriting({ kind: "new" });
    field.change("", 0);
    onSent();
  };

  const editLast = () => {
    const { items } = model.get(`messages:${chat.id}`);
    const last = items.findLast(
      ({ sender, delivery }) => sender.username === me.username && delivery === "sent",
    );
    if (last) onWriting({ kind: "edit", message: last });
    return last !== undefined;
  };

  const insert = (inserted: string) => {
    const { text, caret } = field;
    field.replace(text.slice(0, caret) + inserted + text.slice(caret), caret + inserted.length);
  };

  return { hasContent, submit, cancel, editLast, insert };
}
