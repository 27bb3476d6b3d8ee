import type { LocalMessage } from "@parley/client";
import { useChat, useClient, useStatus } from "@parley/client/react";
import { lazy, Suspense, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { DropArea } from "../files/DropArea.tsx";
import { acceptableCopies } from "../files/local-copies.ts";
import { useIsBlocked } from "../lib/blocked.ts";
import { codeOf, describeError } from "../lib/errors.ts";
import { useFocusKept } from "../lib/keep-focus.ts";
import { navigate, type Route } from "../lib/router.ts";
import { isTouch } from "../lib/screen.ts";
import { Button } from "../ui/Button.tsx";
import { ChatHeader } from "./ChatHeader.tsx";
import { ChatSkeleton } from "./ChatSkeleton.tsx";
import { BlockedComposer } from "./composer/BlockedComposer.tsx";
import { ClosedComposer } from "./composer/ClosedComposer.tsx";
import { Composer, type ComposerHandle } from "./composer/Composer.tsx";
import type { Writing } from "./composer/writing.ts";
import { ChatContext } from "./context.ts";
import { useLayer } from "./layer.tsx";
import { loadedMessage } from "./loaded-message.ts";
import { confusablePeople } from "./sender-names.ts";
import { MessageList, type MessageListHandle } from "./timeline/MessageList.tsx";

const Details = lazy(() => import("./details/Details.tsx"));
const UnsentTexts = lazy(() => import("./UnsentTexts.tsx"));

/** In the details a heading. The field would open the keyboard of a touch screen. */
const FOCUSED_NEXT = isTouch() ? ["aside h3"] : ["form textarea", "aside h3"];

interface ChatViewProps {
  route: Extract<Route, { name: "chat" }>;
}

export default function ChatView({ route }: ChatViewProps) {
  const { id } = route;
  const chat = useChat(id);
  const { model } = useClient();
  const list = useRef<MessageListHandle>(null);
  const composer = useRef<ComposerHandle>(null);
  const [problem, setProblem] = useState<unknown>(null);
  const [writing, setWriting] = useState<Writing>({ kind: "new" });
  const [details, setDetails] = useState(false);
  const { openLayer, layer } = useLayer();
  const isOnline = useStatus() === "online";

  const open = useCallback(() => {
    setProblem(null);
    model.openChat(id).catch(setProblem);
  }, [model, id]);
  useEffect(open, [open]);

  const onJump = useCallback((messageId: string) => list.current?.jumpTo(messageId), []);
  const loaded = chat !== null;
  const wasLoaded = useRef(false);
  wasLoaded.current ||= loaded;
  useEffect(() => {
    if (route.message && loaded) onJump(route.message);
  }, [route, loaded, onJump]);

  useEffect(() => {
    if (route.details) setDetails(true);
  }, [route]);

  const isBlocked = useIsBlocked();
  const isClosed = chat?.kind === "direct" && chat.participants.some(({ deleted }) => deleted);
  const blocked = chat?.kind === "direct" && chat.participants.find(isBlocked);
  const isReadOnly = Boolean(isClosed || blocked);
  const participants = chat?.participants;
  const confusable = useMemo(() => confusablePeople(participants ?? []), [participants]);
  const context = useMemo(
    () =>
      chat && {
        chat,
        isReadOnly,
        confusable,
        onReply: (message: LocalMessage) => setWriting({ kind: "reply", message }),
        onEdit: (message: LocalMessage) => setWriting({ kind: "edit", message }),
        onReturnToComposer: (message: LocalMessage) => {
          const replied = message.reply_to_id && loadedMessage(model, id, message.reply_to_id);
          setWriting(replied ? { kind: "reply", message: replied } : { kind: "new" });
          composer.current?.returnToDraft(message.content, acceptableCopies(message));
          if (message.client_msg_id) model.discard(message.client_msg_id);
        },
        onJump,
        ...openLayer,
      },
    [chat, isReadOnly, confusable, onJump, openLayer, model, id],
  );

  const view = useFocusKept(FOCUSED_NEXT);
  // Without a connection, the client may have discarded its copy, to fetch another one.
  const wasRemoved = wasLoaded.current && isOnline;
  if (!chat && wasRemoved) return <Missing chatId={id} reason="You are no longer part of it." />;
  if (!chat && problem !== null) return <Missing chatId={id} reason={whyMissing(problem)} />;
  if (!context) return <ChatSkeleton />;
  return (
    <ChatContext value={context}>
      <div ref={view} className="flex h-full">
        <DropArea
          isClosed={isClosed || Boolean(blocked) || writing.kind === "edit"}
          className="flex min-w-0 flex-1 flex-col bg-canvas"
        >
          <ChatHeader details={details} onDetails={() => setDetails(!details)} />
          <MessageList ref={list} key={id} problem={problem} onRetry={open} />
          {isClosed ? (
            <ClosedComposer />
          ) : blocked ? (
            <BlockedComposer account={blocked} />
          ) : (
            <Composer
              ref={composer}
              writing={writing}
              onWriting={setWriting}
              onSent={() => list.current?.toLatest()}
            />
          )}
        </DropArea>
        <Suspense>{details && <Details onClose={() => setDetails(false)} />}</Suspense>
      </div>
      {layer}
    </ChatContext>
  );
}

function whyMissing(problem: unknown): string {
  if (codeOf(problem) === "forbidden") return "You are not part of it.";
  const isUnknown = ["not_found", "bad_request"].includes(codeOf(problem));
  return isUnknown ? "There is nothing at this address." : describeError(problem);
}

function Missing({ chatId, reason }: { chatId: string; reason: string }) {
  return (
    <main className="flex h-full flex-col items-center justify-center gap-4 bg-canvas px-6 text-center">
      <h1 className="text-xl font-semibold tracking-tight">This conversation is not here</h1>
      <p className="text-md text-ink-2">{reason}</p>
      <Suspense>
        <UnsentTexts chatId={chatId} />
      </Suspense>
      <Button onClick={() => navigate("/", { replace: true })}>Back to conversations</Button>
    </main>
  );
}
