import {
  type KeyboardEvent,
  lazy,
  type Ref,
  Suspense,
  useEffect,
  useId,
  useImperativeHandle,
  useRef,
} from "react";
import { EmojiButton } from "../../emoji/EmojiButton.tsx";
import { AttachButton } from "../../files/AttachButton.tsx";
import { AttachmentStrip } from "../../files/AttachmentStrip.tsx";
import { useAttachments } from "../../files/attachments.ts";
import { usePastedFiles } from "../../files/paste.ts";
import { isCompositionKey } from "../../lib/composition.ts";
import { charactersLeft } from "../../lib/content-limit.ts";
import { useSelf } from "../../lib/me.ts";
import { addressee, truncated } from "../../lib/names.ts";
import { isTouch, useNarrow } from "../../lib/screen.ts";
import { useTypingAnywhere } from "../../lib/shortcuts.ts";
import { useChatContext } from "../context.ts";
import { ComposerBanner } from "./ComposerBanner.tsx";
import { Counter, isTooLong } from "./Counter.tsx";
import { useComposerActions } from "./composer-actions.ts";
import { useComposerText } from "./composer-text.ts";
import { MentionList } from "./MentionList.tsx";
import { useMentionChoice } from "./mention-choice.ts";
import { useReplyHandle } from "./reply-handle.ts";
import { SendButton } from "./SendButton.tsx";
import type { Writing } from "./writing.ts";

const AddMentioned = lazy(() => import("./AddMentioned.tsx"));

export interface ComposerHandle {
  /** Puts a message in front of the draft, to be changed and sent again. */
  returnToDraft: (text: string, files: readonly File[]) => void;
}

interface ComposerProps {
  ref: Ref<ComposerHandle>;
  writing: Writing;
  onWriting: (writing: Writing) => void;
  onSent: () => void;
}

export function Composer({ ref, writing, onWriting, onSent }: ComposerProps) {
  const { chat } = useChatContext();
  const me = useSelf();
  const isNarrow = useNarrow();
  const id = useId();
  const area = useRef<HTMLTextAreaElement>(null);
  const field = useComposerText(area, writing);
  const mentions = useMentionChoice(field);
  const attachments = useAttachments();
  const actions = useComposerActions({ writing, onWriting, onSent, field, attachments });
  useReplyHandle(writing, field);
  useImperativeHandle(ref, () => ({
    returnToDraft(text, files) {
      field.prependToDraft(text);
      if (files.length > 0) attachments.add(files);
    },
  }));
  const isEdit = writing.kind === "edit";
  usePastedFiles(area, (files) => !isEdit && attachments.add(files));
  useTypingAnywhere(area);
  useEffect(() => {
    if (matchMedia("(pointer: fine)").matches) area.current?.focus();
  }, []);

  const content = field.text.trim();
  const left = charactersLeft(content);
  const isEmpty = field.text === "" && attachments.items.length === 0;
  /** False if the key only edits the text. */
  const handleKey = (event: KeyboardEvent): boolean => {
    if (!event.shiftKey && mentions.handleKey(event.key)) return true;
    if (event.key === "Enter" && isSendKey(event)) actions.submit();
    else if (event.key === "Escape" && writing.kind !== "new") actions.cancel();
    else if (event.key === "ArrowUp" && isEmpty && writing.kind === "new") {
      return actions.editLast();
    } else return false;
    return true;
  };

  const isOffering = mentions.offered.length > 0;
  return (
    <div className="shrink-0 px-3 pb-[max(0.75rem,env(safe-area-inset-bottom))] md:px-4 md:pb-4">
      <div className="relative mx-auto max-w-200">
        {isOffering && <MentionList id={id} {...mentions} />}
        <Suspense>
          {mentions.asked && <AddMentioned {...mentions} agent={mentions.asked} />}
        </Suspense>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            actions.submit();
          }}
          className="rounded-lg border border-edge bg-surface shadow-low transition-shadow focus-within:border-accent focus-within:ring-3 focus-within:ring-accent-soft"
        >
          {writing.kind !== "new" && <ComposerBanner writing={writing} onCancel={actions.cancel} />}
          {!isEdit && <AttachmentStrip attachments={attachments} field={area} />}
          <div className="flex items-end gap-1 p-1.5">
            {!isEdit && (
              <AttachButton
                onFiles={(files) => {
                  attachments.add(files);
                  if (!isTouch()) area.current?.focus();
                }}
              />
            )}
            <textarea
              ref={area}
              rows={1}
              value={field.text}
              dir="auto"
              enterKeyHint={isTouch() ? "enter" : "send"}
              aria-label={isEdit ? "Edit message" : "Message"}
              aria-autocomplete="list"
              aria-controls={isOffering ? `${id}-list` : undefined}
              aria-activedescendant={isOffering ? `${id}-${mentions.active}` : undefined}
              placeholder={`Message ${truncated(addressee(chat, me), isNarrow ? 14 : 24)}`}
              onChange={({ target }) => field.change(target.value, target.selectionStart)}
              onSelect={({ currentTarget }) => field.moveCaret(currentTarget.selectionStart)}
              onKeyDown={(event) => {
                if (isCompositionKey(event) || event.altKey) return;
                if (handleKey(event)) event.preventDefault();
              }}
              className="max-h-52 min-h-10 flex-1 resize-none bg-transparent px-2.5 py-2 text-md outline-none placeholder:whitespace-nowrap pointer-coarse:text-[1rem]"
            />
            <EmojiButton
              label="Insert an emoji"
              className="max-sm:hidden"
              onPick={actions.insert}
            />
            <SendButton
              edit={isEdit}
              empty={!actions.hasContent}
              disabled={!actions.hasContent || isTooLong(left)}
            />
          </div>
          <Counter left={left} />
        </form>
      </div>
    </div>
  );
}

/** Keyboards of touch screens have no Shift+Enter: there, Enter breaks the line. */
const isSendKey = (event: KeyboardEvent) =>
  event.ctrlKey || event.metaKey || !(event.shiftKey || isTouch());
