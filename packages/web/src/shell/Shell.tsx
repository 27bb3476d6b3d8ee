import type { Account } from "@parley/protocol";
import { lazy, Suspense, useEffect, useRef, useState } from "react";
import { ChatSkeleton } from "../chat/ChatSkeleton.tsx";
import { MeContext } from "../lib/me.ts";
import { onDemand } from "../lib/on-demand.tsx";
import { OperatorContext, useOperatorCheck } from "../lib/operator.ts";
import { useRoute } from "../lib/router.ts";
import { useShortcuts } from "../lib/shortcuts.ts";
import { ConfirmSignOut } from "../session/ConfirmSignOut.tsx";
import { askedToConfirm } from "../session/confirmation.ts";
import { PendingContext, usePendingCalls } from "../tools/pending.ts";
import { ErrorBoundary } from "../ui/ErrorBoundary.tsx";
import { ConnectionBanner } from "./ConnectionBanner.tsx";
import { Home } from "./Home.tsx";
import { NotFound } from "./NotFound.tsx";
import { useNotifications } from "./notifications.ts";
import { OperatorsOnly } from "./OperatorsOnly.tsx";
import { PageSkeleton } from "./Page.tsx";
import { PageTitle } from "./PageTitle.tsx";
import { Sidebar } from "./Sidebar.tsx";
import { Switcher } from "./Switcher.tsx";

const ChatView = onDemand(() => import("../chat/ChatView.tsx"));
const Confirmation = lazy(() => import("../session/Confirmation.tsx"));
const NewChat = lazy(() => import("../people/NewChat.tsx"));
const AgentsPage = lazy(() => import("../agents/AgentsPage.tsx"));
const SettingsPage = lazy(() => import("../session/SettingsPage.tsx"));
const WaitingPage = lazy(() => import("../tools/WaitingPage.tsx"));
const OperatePage = lazy(() => import("../operate/OperatePage.tsx"));

type Overlay = "switcher" | "new-chat" | null;

interface ShellProps {
  me: Account;
  /** The person has just signed in, with a form that took the focus along. */
  isEntered: boolean;
}

/** The list beside the open page; on a narrow screen one of the two. */
export default function Shell({ me, isEntered }: ShellProps) {
  const route = useRoute();
  const [overlay, setOverlay] = useState<Overlay>(null);
  const content = useRef<HTMLDivElement>(null);
  const open = route.name === "chat" ? route.id : null;
  useShortcuts({ open, onSwitch: () => setOverlay("switcher") });
  useNotifications(me);
  const operator = useOperatorCheck(me);
  const pending = usePendingCalls(me);
  const atList = route.name === "home";
  useEffect(loadAhead, []);
  useEffect(() => {
    if (isEntered && document.activeElement === document.body) content.current?.focus();
  }, [isEntered]);
  return (
    <MeContext value={me}>
      <OperatorContext value={operator}>
        <PendingContext value={pending}>
          <div className="flex h-full flex-col">
            <PageTitle route={route} />
            <Skip onSkip={() => content.current?.focus()} />
            <ConnectionBanner />
            <div className="flex min-h-0 flex-1">
              <Sidebar
                open={open}
                hidden={!atList}
                onSearch={() => setOverlay("switcher")}
                onNewChat={() => setOverlay("new-chat")}
              />
              <div
                ref={content}
                tabIndex={-1}
                className={`min-w-0 flex-1 outline-none ${atList ? "max-md:hidden" : ""}`}
              >
                <ErrorBoundary key={`${route.name} ${open}`}>
                  <Suspense fallback={<PageSkeleton />}>
                    {route.name === "chat" && (
                      <Suspense fallback={<ChatSkeleton />}>
                        <ChatView key={route.id} route={route} />
                      </Suspense>
                    )}
                    {route.name === "agents" && <AgentsPage target={route.target} />}
                    {route.name === "settings" && <SettingsPage page={route.page} />}
                    {route.name === "waiting" && <WaitingPage />}
                    {route.name === "operate" && (
                      <OperatorsOnly>
                        <OperatePage route={route} />
                      </OperatorsOnly>
                    )}
                    {route.name === "missing" && <NotFound />}
                    {route.name === "home" && <Home onNewChat={() => setOverlay("new-chat")} />}
                  </Suspense>
                </ErrorBoundary>
              </div>
            </div>
          </div>
          {overlay === "switcher" && (
            <Switcher onClose={() => setOverlay(null)} onNewChat={() => setOverlay("new-chat")} />
          )}
          {overlay === "new-chat" && (
            <Suspense>
              <NewChat onClose={() => setOverlay(null)} />
            </Suspense>
          )}
          {askedToConfirm.use() && (
            <Suspense>
              <Confirmation />
            </Suspense>
          )}
          <ConfirmSignOut />
        </PendingContext>
      </OperatorContext>
    </MeContext>
  );
}

/** Loads conversations before the first one is opened, which may be without a connection. */
function loadAhead(): void {
  // If it fails, opening a conversation loads them.
  void ChatView.load().catch(() => {});
}

/** The first element that Tab reaches, visible only with the focus: skips a list that may be long. */
function Skip({ onSkip }: { onSkip: () => void }) {
  return (
    <button
      type="button"
      onClick={onSkip}
      className="sr-only focus-visible:not-sr-only focus-visible:absolute focus-visible:top-2 focus-visible:left-2 focus-visible:z-40 focus-visible:h-10 focus-visible:rounded-md focus-visible:bg-raised focus-visible:px-4 focus-visible:text-base focus-visible:font-medium focus-visible:shadow-pop"
    >
      Skip the list
    </button>
  );
}
