import { navigate } from "../lib/router.ts";
import { Button } from "../ui/Button.tsx";

/** The page at an unknown address. */
export function NotFound() {
  return (
    <main className="flex h-full flex-col items-center overflow-y-auto bg-canvas px-6 py-10 text-center">
      <div className="m-auto flex flex-col items-center gap-4">
        <h1 className="text-xl font-semibold tracking-tight">There is nothing here</h1>
        <p className="max-w-sm text-md break-words text-ink-2">
          No page has the address <span className="break-all">{location.pathname}</span>.
        </p>
        <Button onClick={() => navigate("/", { replace: true })}>Back to conversations</Button>
      </div>
    </main>
  );
}
