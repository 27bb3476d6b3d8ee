import { useChatIds } from "@parley/client/react";
import { lazy, Suspense } from "react";
import { meetsPeople, usePolicy } from "../lib/policy.ts";
import { keyNames } from "../lib/shortcuts.ts";
import { Button } from "../ui/Button.tsx";

const Welcome = lazy(() => import("./Welcome.tsx"));

/** The page without an open conversation: the welcome page as long as there are no conversations. */
export function Home({ onNewChat }: { onNewChat: () => void }) {
  const ids = useChatIds();
  return (
    <main className="flex h-full overflow-y-auto bg-canvas px-6 py-10">
      <div className="m-auto w-full max-w-lg">
        {ids.length === 0 ? (
          <Suspense>
            <Welcome onNewChat={onNewChat} />
          </Suspense>
        ) : (
          <NothingOpen onNewChat={onNewChat} />
        )}
      </div>
    </main>
  );
}

const keys: [string, string][] = [
  [keyNames.switcher, "Go to a conversation, or search messages"],
  [keyNames.neighbours, "Previous and next conversation"],
  ["↑", "Edit your last message"],
  ["@", "Mention a person or an agent"],
];

function NothingOpen({ onNewChat }: { onNewChat: () => void }) {
  const mayStart = meetsPeople(usePolicy());
  return (
    <div className="flex flex-col items-center gap-6 text-center">
      <div>
        <h1 className="text-xl font-semibold tracking-tight">Choose a conversation</h1>
        {mayStart && (
          <p className="mt-1.5 text-md text-ink-2">or start a new one, with people and agents.</p>
        )}
      </div>
      {mayStart && (
        <Button icon="compose" look="primary" onClick={onNewChat}>
          New conversation
        </Button>
      )}
      <dl className="grid grid-cols-[auto_auto] gap-x-4 gap-y-2 text-sm text-ink-3 pointer-coarse:hidden">
        {keys.map(([key, meaning]) => (
          <div key={key} className="contents">
            <dt className="text-right">
              <kbd className="rounded-xs border border-line bg-surface px-1.5 py-0.5 font-sans text-xs text-ink-2">
                {key}
              </kbd>
            </dt>
            <dd className="text-left">{meaning}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}
