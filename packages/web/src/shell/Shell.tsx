import type { Account } from "@parley/protocol";
import { lazy, Suspense, useState } from "react";
import { ChatView } from "../chat/ChatView.tsx";
import { useAway } from "../lib/away.ts";
import { MeContext } from "../lib/me.ts";
import { useRoute } from "../lib/router.ts";
import { useShortcuts } from "../lib/shortcuts.ts";
import { NewChat } from "../people/NewChat.tsx";
import { Failure } from "../ui/Failure.tsx";
import { Home } from "./Home.tsx";
import { OfflineBanner } from "./OfflineBanner.tsx";
import { PageSkeleton } from "./Page.tsx";
import { Sidebar } from "./Sidebar.tsx";
import { Switcher } from "./Switcher.tsx";

const AgentsPage = lazy(() => import("../agents/AgentsPage.tsx"));
const SettingsPage = lazy(() => import("../session/SettingsPage.tsx"));

export type Overlay = "switcher" | "new-chat" | null;

/** A list beside what was chosen from it; on a phone one of the two. */
export function Shell({ me }: { me: Account }) {
  const route = useRoute();
  const [overlay, setOverlay] = useState<Overlay>(null);
  const open = route.name === "chat" ? route.id : null;
  useShortcuts({ open, onSwitch: () => setOverlay("switcher") });
  useAway(me);
  const atList = route.name === "home";
  return (
    <MeContext value={me}>
      <div className="flex h-full flex-col">
        <OfflineBanner />
        <div className="flex min-h-0 flex-1">
          <Sidebar open={open} onOverlay={setOverlay} hidden={!atList} />
          <div className={`min-w-0 flex-1 ${atList ? "max-md:hidden" : ""}`}>
            <Failure key={route.name}>
              <Suspense fallback={<PageSkeleton />}>
                {route.name === "chat" && <ChatView key={route.id} route={route} />}
                {route.name === "agents" && <AgentsPage />}
                {route.name === "settings" && <SettingsPage />}
                {route.name === "home" && <Home onNewChat={() => setOverlay("new-chat")} />}
              </Suspense>
            </Failure>
          </div>
        </div>
      </div>
      {overlay === "switcher" && (
        <Switcher onClose={() => setOverlay(null)} onNewChat={() => setOverlay("new-chat")} />
      )}
      {overlay === "new-chat" && <NewChat onClose={() => setOverlay(null)} />}
    </MeContext>
  );
}
