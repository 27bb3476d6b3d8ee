import { useMe, useStatus } from "@parley/client/react";
import { lazy, Suspense, useRef } from "react";
import { onDemand } from "./lib/on-demand.tsx";
import { useRoute } from "./lib/router.ts";
import { isFinishing } from "./session/returns.ts";
import { Loading } from "./shell/Loading.tsx";
import { Toasts } from "./ui/Toasts.tsx";

const Shell = onDemand(() => import("./shell/Shell.tsx"));
const SignIn = onDemand(() => import("./session/SignIn.tsx"));
const ResetPassword = lazy(() => import("./session/ResetPassword.tsx"));

/** Loads what the page shows first, and then what it shows after a sign-in or a sign-out. */
export async function loadViews(isSignedIn: boolean, onFirst: () => void): Promise<void> {
  const [first, second] = isSignedIn ? [Shell, SignIn] : [SignIn, Shell];
  // What could not be loaded is loaded again when it is shown.
  await first.load().catch(() => {});
  onFirst();
  // The same holds for the second one.
  await second.load().catch(() => {});
}

export function App() {
  const route = useRoute();
  const status = useStatus();
  const me = useMe();
  const isReturning = isFinishing.use();
  const wasSignedOut = useRef(false);
  wasSignedOut.current ||= status === "signed_out";
  return (
    <>
      <Suspense fallback={<Loading />}>
        {route.name === "reset-password" ? (
          <ResetPassword key={route.token} token={route.token} />
        ) : isReturning || (status !== "signed_out" && !me) ? (
          <Loading />
        ) : me && status !== "signed_out" ? (
          <Shell me={me} isEntered={wasSignedOut.current} />
        ) : (
          <SignIn />
        )}
      </Suspense>
      <Toasts />
    </>
  );
}
