import { useMe, useStatus } from "@parley/client/react";
import { isFinishing } from "./session/returns.ts";
import { SignIn } from "./session/SignIn.tsx";
import { Loading } from "./shell/Loading.tsx";
import { Shell } from "./shell/Shell.tsx";
import { Toasts } from "./ui/Toasts.tsx";

export function App() {
  const status = useStatus();
  const me = useMe();
  const isReturning = isFinishing.use();
  return (
    <>
      {isReturning || (status !== "signed_out" && !me) ? (
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
