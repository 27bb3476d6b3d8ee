import { useMe, useStatus } from "@parley/client/react";
import { lazy, Suspense } from "react";
import { useRoute } from "./lib/router.ts";
import { isFinishing } from "./session/returns.ts";
import { SignIn } from "./session/SignIn.tsx";
import { Loading } from "./shell/Loading.tsx";
import { Shell } from "./shell/Shell.tsx";
import { Toasts } from "./ui/Toasts.tsx";

const ResetPassword = lazy(() => import("./session/ResetPassword.tsx"));

export function App() {
  const route = useRoute();
  const status = useStatus();
  const me = useMe();
  const isReturning = isFinishing.use();
  return (
    <>
      {route.name === "reset-password" ? (
        <Suspense fallback={<Loading />}>
          <ResetPassword key={route.token} token={route.token} />
        </Suspense>
      ) : isReturning || (status !== "signed_out" && !me) ? (
        <Loading />
      ) : me && status !== "signed_out" ? (
        <Shell me={me} />
      ) : (
        <SignIn />
      )}
      <Toasts />
    </>
  );
}
