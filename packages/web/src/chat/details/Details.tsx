import { useClient, useFileLinks } from "@parley/client/react";
import { type FormEvent, lazy, Suspense, useLayoutEffect, useRef, useState } from "react";
import { AgentChats, NewChatButton } from "../../agents/AgentChats.tsx";
import { CardSection } from "../../agents/CardSection.tsx";
import { PictureField } from "../../files/PictureField.tsx";
import { useAction } from "../../lib/action.ts";
import { useBackCloses } from "../../lib/back.ts";
import { describeError } from "../../lib/errors.ts";
import { returnFocus } from "../../lib/focus.ts";
import { useSelf } from "../../lib/me.ts";
import { isMyAgent, others } from "../../lib/names.ts";
import { useMedia } from "../../lib/screen.ts";
import { ChatAvatar } from "../../shell/ChatItem.tsx";
import { Button, IconButton } from "../../ui/Button.tsx";
import { Field } from "../../ui/Field.tsx";
import { useChatContext } from "../context.ts";
import { Files } from "./Files.tsx";
import { GroupAgents } from "./GroupAgents.tsx";
import { Members } from "./Members.tsx";

const LeaveGroup = lazy(() => import("./LeaveGroup.tsx"));

/** The details of a conversation: beside it where there is room, otherwise over it. */
export default function Details({ onClose }: { onClose: () => void }) {
  const { chat } = useChatContext();
  const me = useSelf();
  const group = chat.kind === "group";
  const [other] = group ? [] : others(chat, me);
  const agent = other && !other.deleted && isMyAgent(other, me) ? other : null;
  const panel = useRef<HTMLElement>(null);
  const isOver = useMedia("(max-width: 63.99rem)");
  useBackCloses(onClose, isOver);
  useLayoutEffect(() => {
    const closeOnEscape = (event: KeyboardEvent) => {
      // Layers above the details, and the composer, handle Escape first.
      const isInLayer = document.activeElement?.closest("dialog, [popover]");
      if (event.key !== "Escape" || event.defaultPrevented || isInLayer) return;
      onClose();
    };
    addEventListener("keydown", closeOnEscape);
    return () => removeEventListener("keydown", closeOnEscape);
  }, [onClose]);
  useLayoutEffect(() => {
    const inside = panel.current;
    const opener = document.activeElement;
    inside?.focus({ preventScroll: true });
    return () => {
      if (inside?.contains(document.activeElement)) returnFocus(opener);
    };
  }, []);
  return (
    <aside
      ref={panel}
      tabIndex={-1}
      aria-label="Details"
      className="flex outline-none w-84 shrink-0 flex-col scroll-pt-15 overflow-y-auto border-l border-line bg-surface max-lg:fixed max-lg:inset-y-0 max-lg:right-0 max-lg:z-30 max-lg:w-full max-lg:shadow-pop sm:max-lg:w-96"
    >
      <header className="sticky top-0 z-10 flex h-15 shrink-0 items-center justify-between border-b border-line bg-surface pr-3 pl-5">
        <h2 className="text-md font-semibold tracking-tight">{group ? "Group" : "Details"}</h2>
        <IconButton icon="close" label="Close details" onClick={onClose} />
      </header>
      <div className="flex flex-col gap-7 p-5">
        {group && <GroupPicture key={chat.id} />}
        {(group || agent) && <Title key={chat.title} />}
        {agent && <Chats username={agent.username} />}
        {group && <GroupAgents />}
        <Members />
        <Files onJump={() => isOver && onClose()} />
        {group && <Leave />}
      </div>
    </aside>
  );
}

/** All conversations with the agent of this one. */
function Chats({ username }: { username: string }) {
  const { chat } = useChatContext();
  return (
    <CardSection title="Chats" action={<NewChatButton username={username} />}>
      <AgentChats username={username} open={chat.id} />
    </CardSection>
  );
}

function GroupPicture() {
  const { chat } = useChatContext();
  const client = useClient();
  // Conversations that an earlier version has stored lack it.
  const id = chat.picture_id ?? null;
  const links = useFileLinks(id === null ? [] : [id]);
  return (
    <PictureField
      label="The group's picture"
      hasPicture={id !== null}
      url={(id !== null && links[id]?.preview_url) || null}
      onChange={(file_id) => client.setChatPicture({ chat_id: chat.id, file_id })}
    >
      <ChatAvatar chat={chat} size={64} />
    </PictureField>
  );
}

function Title() {
  const { chat } = useChatContext();
  const client = useClient();
  const { busy, error, run, clearError } = useAction();
  const [title, setTitle] = useState(chat.title ?? "");
  const changed = title.trim() !== "" && title.trim() !== chat.title;
  const save = (event: FormEvent) => {
    event.preventDefault();
    if (changed) void run(() => client.setChatTitle({ chat_id: chat.id, title: title.trim() }));
  };
  return (
    <form onSubmit={save}>
      <Field label="Title" error={error === null ? undefined : describeError(error)}>
        {(attributes) => (
          <span className="flex gap-2">
            <input
              {...attributes}
              className="field"
              value={title}
              maxLength={128}
              placeholder="No title yet"
              onChange={(event) => {
                setTitle(event.target.value);
                clearError();
              }}
            />
            {changed && (
              <Button type="submit" look="primary" busy={busy}>
                Save
              </Button>
            )}
          </span>
        )}
      </Field>
    </form>
  );
}

function Leave() {
  const { chat } = useChatContext();
  const [asking, setAsking] = useState(false);
  return (
    <>
      <Button look="danger" icon="leave" className="self-start" onClick={() => setAsking(true)}>
        Leave group
      </Button>
      <Suspense>{asking && <LeaveGroup chat={chat} onClose={() => setAsking(false)} />}</Suspense>
    </>
  );
}
