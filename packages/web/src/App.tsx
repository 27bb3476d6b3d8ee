import { useMe, useStatus } from "@parley/client/react";
import { SignIn } from "./session/SignIn.tsx";
import { Loading } from "./shell/Loading.tsx";
import { Shell } from "./shell/Shell.tsx";
import { Toasts } from "./ui/Toasts.tsx";

export function App() {
  const status = useStatus();
  const me = useMe();
  return (
    <>
      {status === "signed_out" ? <SignIn /> : me ? <Shell me={me} /> : <Loading />}
      <Toasts />
    </>
  );
}
