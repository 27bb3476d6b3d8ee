import type { LocalMessage } from "@parley/client";
import { useClient } from "@parley/client/react";
import {
  type KeyboardEvent,
  type Ref,
  useEffect,
  useId,
  useImperativeHandle,
  useLayoutEffect,
  useRef,
  useState,
} from "react";
import { EmojiPicker } from "../emoji/EmojiPicker.tsx";
import { complain } from "../lib/action.ts";
import { useSelf } from "../lib/me.ts";
import { chatTitle, shortened } from "../lib/names.ts";
import { useTypingAnywhere } from "../lib/shortcuts.ts";
import { IconButton } from "../ui/Button.tsx";
import { ComposerBanner } from "./ComposerBanner.tsx";
import { Counter, isTooLong } from "./Counter.tsx";
import { useTools } from "./context.ts";
import { bytesLeft } from "./limit.ts";
import { MentionList } from "./MentionList.tsx";
import { candidates, complete, mentionAt, unaddressed } from "./mention.ts";
import { useReplyHandle } from "./reply-handle.ts";
import { SendButton } from "./SendButton.tsx";

/** What the composer is for at the moment. */
export type Writing =
  | { kind: "new" }
  | { kind: "reply"; message: LocalMessage }
  | { kind: "edit"; message: LocalMessage };

export interface ComposerHandle {
  /** Puts a text in front of what is being written, to be changed and sent again. */
  takeBack: (text: string) => void;
}

interface ComposerProps {
  ref: Ref<ComposerHandle>;
  writing: Writing;
  onWriting: (writing: Writing) => void;
  onSent: () => void;
}

export function Composer({ ref, writing, onWriting, onSent }: ComposerProps) {
  const { chat } = useTools();
  const me = useSelf();
  const { model } = useClient();
  const id = useId();
  const area = useRef<HTMLTextAreaElement>(null);
  const emoji = useRef<HTMLButtonElement>(null);
  /** Where the caret goes once the text it stands in is there. */
  const nextCaret = useRef<number | null>(null);
  const [text, setText] = useState(() => model.get(`draft:${chat.id}`));
  const [caret, setCaret] = useState(0);
  const [choice, setChoice] = useState(0);
  const [dismissed, setDismissed] = useState(-1);
  const [picking, setPicking] = useState(false);

  const mention = mentionAt(text, caret);
  const offered =
    mention && mention.start !== dismissed
      ? candidates(chat.participants, me.username, mention.query)
      : [];
  const active = Math.min(choice, offered.length - 1);
  const left = bytesLeft(text.trim());

  useEffect(() => {
    if (writing.kind === "edit") setText(writing.message.content);
    if (writing.kind !== "new") area.current?.focus();
  }, [writing]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: height and caret follow the text
  useLayoutEffect(() => {
    const box = area.current;
    if (!box) return;
    box.style.height = "auto";
    box.style.height = `${box.scrollHeight}px`;
    if (nextCaret.current === null) return;
    box.focus();
    box.setSelectionRange(nextCaret.current, nextCaret.current);
    nextCaret.current = null;
  }, [text]);

  useEffect(() => {
    if (matchMedia("(pointer: fine)").matches) area.current?.focus();
  }, []);
  useTypingAnywhere(area);

  const change = (next: string, at: number) => {
    setText(next);
    setCaret(at);
    setChoice(0);
    if (writing.kind === "edit") return;
    model.setDraft(chat.id, next);
    if (next.trim() !== "") model.typing(chat.id);
  };

  const put = (next: string, at: number) => {
    nextCaret.current = at;
    change(next, at);
  };

  useReplyHandle(writing, { text, caret, put });
  useImperativeHandle(
    ref,
    () => ({
      takeBack(returned) {
        const draft = model.get(`draft:${chat.id}`);
        const next = draft === "" ? returned : `${returned}\n\n${draft}`;
        nextCaret.current = returned.length;
        setText(next);
        model.setDraft(chat.id, next);
      },
    }),
    [model, chat.id],
  );

  const leave = () => {
    onWriting({ kind: "new" });
    if (writing.kind === "edit") setText(model.get(`draft:${chat.id}`));
    else if (writing.kind === "reply" && writing.message.sender.kind === "agent") {
      const rest = unaddressed(text, writing.message.sender.username);
      put(rest, rest.length);
    }
  };

  const submit = () => {
    const content = text.trim();
    if (content === "" || isTooLong(left)) return;
    if (writing.kind === "edit") {
      if (content !== writing.message.content) {
        model.edit(writing.message.id, content).catch(complain);
      }
      return leave();
    }
    model.send(chat.id, content, writing.kind === "reply" ? { replyTo: writing.message.id } : {});
    onWriting({ kind: "new" });
    change("", 0);
    onSent();
  };

  const take = (index: number) => {
    const account = offered[index];
    if (!account || !mention) return;
    const next = complete(text, caret, mention, account.username);
    put(next.text, next.caret);
  };

  const editLast = () => {
    const { items } = model.get(`messages:${chat.id}`);
    const last = items.findLast(
      ({ sender, delivery }) => sender.username === me.username && delivery === "sent",
    );
    if (last) onWriting({ kind: "edit", message: last });
    return last !== undefined;
  };

  /** True when the key was for the list of names. */
  const choosing = (key: string): boolean => {
    if (offered.length === 0) return false;
    if (key === "ArrowDown") setChoice((active + 1) % offered.length);
    else if (key === "ArrowUp") setChoice((active - 1 + offered.length) % offered.length);
    else if (key === "Enter" || key === "Tab") take(active);
    else if (key === "Escape") setDismissed(mention?.start ?? -1);
    else return false;
    return true;
  };

  const pressed = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    if (event.nativeEvent.isComposing || event.altKey) return;
    if (!event.shiftKey && choosing(event.key)) event.preventDefault();
    else if (event.key === "Enter" && sends(event)) {
      event.preventDefault();
      submit();
    } else if (event.key === "Escape" && writing.kind !== "new") {
      event.preventDefault();
      leave();
    } else if (event.key === "ArrowUp" && text === "" && writing.kind === "new") {
      if (editLast()) event.preventDefault();
    }
  };

  return (
    <div className="shrink-0 px-3 pb-[max(0.75rem,env(safe-area-inset-bottom))] md:px-4 md:pb-4">
      <div className="relative mx-auto max-w-200">
        {offered.length > 0 && (
          <MentionList id={id} accounts={offered} active={active} onTake={take} />
        )}
        <form
          onSubmit={(event) => {
            event.preventDefault();
            submit();
          }}
          className="rounded-lg border border-edge bg-surface shadow-low transition-shadow focus-within:border-accent focus-within:ring-3 focus-within:ring-accent-soft"
        >
          {writing.kind !== "new" && <ComposerBanner writing={writing} onCancel={leave} />}
          <div className="flex items-end gap-1 p-1.5">
            <textarea
              ref={area}
              rows={1}
              value={text}
              dir="auto"
              enterKeyHint={touches() ? "enter" : "send"}
              aria-label={writing.kind === "edit" ? "Edit message" : "Message"}
              aria-autocomplete="list"
              aria-controls={offered.length > 0 ? `${id}-list` : undefined}
              aria-activedescendant={offered.length > 0 ? `${id}-${active}` : undefined}
              placeholder={`Message ${shortened(chatTitle(chat, me), 24)}`}
              onChange={(event) => change(event.target.value, event.target.selectionStart)}
              onSelect={(event) => setCaret(event.currentTarget.selectionStart)}
              onKeyDown={pressed}
              className="max-h-52 min-h-10 flex-1 resize-none bg-transparent px-2.5 py-2 text-md outline-none placeholder:whitespace-nowrap pointer-coarse:text-[1rem]"
            />
            <IconButton
              ref={emoji}
              icon="smile"
              label="Insert an emoji"
              aria-haspopup="dialog"
              aria-expanded={picking}
              className="max-sm:hidden"
              onClick={() => setPicking(!picking)}
            />
            <SendButton
              edit={writing.kind === "edit"}
              empty={text.trim() === ""}
              disabled={text.trim() === "" || isTooLong(left)}
            />
          </div>
          <Counter left={left} />
        </form>
        {picking && (
          <EmojiPicker
            anchor={emoji}
            onClose={() => setPicking(false)}
            onPick={(picked) => {
              setPicking(false);
              put(text.slice(0, caret) + picked + text.slice(caret), caret + picked.length);
            }}
          />
        )}
      </div>
    </div>
  );
}

/** Keyboards of touch screens have no Shift with Enter: there it breaks the line, as elsewhere. */
const touches = () => matchMedia("(pointer: coarse)").matches;
const sends = (event: KeyboardEvent) =>
  event.ctrlKey || event.metaKey || !(event.shiftKey || touches());
