import type { Client } from "@parley/client";
import { useClient } from "@parley/client/react";
import type { OutputOf } from "@parley/protocol";
import { useEffect, useState } from "react";
import { useAction } from "../lib/action.ts";
import { codeOf } from "../lib/errors.ts";
import { navigate } from "../lib/router.ts";
import { toast } from "../lib/toasts.ts";
import { Button } from "../ui/Button.tsx";
import { TextField } from "../ui/Field.tsx";
import { Form, FormProblem } from "../ui/Form.tsx";
import { Skeleton } from "../ui/Skeleton.tsx";
import { FetchProblem } from "../ui/Unfetched.tsx";
import { rememberSignIn, signInNotice } from "./client.ts";
import { knownDevice } from "./device.ts";
import { Masthead, SignInFrame } from "./SignInFrame.tsx";

type Link = OutputOf<"getPasswordReset">;

/** The page of a reset link: sets a new password, and signs in with it. */
export default function ResetPassword({ token }: { token: string }) {
  const client = useClient();
  const { error, run } = useAction();
  const [link, setLink] = useState<Link | null>(null);
  const load = () => void run(async () => setLink(await client.getPasswordReset({ token })));
  // biome-ignore lint/correctness/useExhaustiveDependencies: a token is asked for once
  useEffect(load, [client, token]);
  useEffect(() => {
    document.title = "New password · Parley";
  }, []);
  if (codeOf(error) === "not_found" || codeOf(error) === "bad_request") return <UselessLink />;
  return (
    <SignInFrame>
      <Masthead title="Set a new password">
        {link ? `for your account @${link.username}` : "for your account"}
      </Masthead>
      {link && <NewPassword token={token} username={link.username} />}
      {!link && error === null && <Skeleton className="h-44" />}
      {error !== null && <FetchProblem problem={error} onRetry={load} />}
    </SignInFrame>
  );
}

function NewPassword({ token, username }: { token: string; username: string }) {
  const client = useClient();
  const { busy, error, run } = useAction();
  if (codeOf(error) === "not_found") return <UselessLink />;
  const save = (new_password: string) =>
    run(async () => {
      await client.resetPassword({ token, new_password });
      await enter(client, username, new_password);
    });
  return (
    <Form
      error={error}
      onSubmit={({ raw }) => void save(raw("new_password"))}
      className="flex flex-col gap-4 rounded-lg bg-raised p-5 shadow-pop"
    >
      {/* For password managers. */}
      <input type="hidden" name="username" autoComplete="username" value={username} />
      <TextField
        label="New password"
        name="new_password"
        type="password"
        autoFocus
        required
        minLength={8}
        maxLength={1024}
        autoComplete="new-password"
        hint="At least 8 characters. You are signed out on all devices."
      />
      <FormProblem />
      <Button type="submit" look="primary" busy={busy}>
        Set the password
      </Button>
    </Form>
  );
}

/** Signs in, unless somebody else is signed in here. What fails is done on the sign-in page. */
async function enter(client: Client, username: string, password: string): Promise<void> {
  const me = client.model.get("me");
  const isOther = client.status !== "signed_out" && me !== null && me.username !== username;
  if (isOther) toast(`The password of @${username} is set.`);
  else await signIn(client, username, password);
  navigate("/", { replace: true });
}

async function signIn(client: Client, username: string, password: string): Promise<void> {
  try {
    const credentials = { username, password, ...knownDevice(username) };
    rememberSignIn(await client.enter("signIn", credentials));
  } catch {
    // A code is needed, or the connection is lost: the sign-in page goes on from here.
    signInNotice.set("Your new password is set. Please sign in with it.");
  }
}

function UselessLink() {
  return (
    <SignInFrame>
      <Masthead title="This link does not work">
        It was used, is older than a day, or was replaced by a newer one. Ask the people who run
        this service for another.
      </Masthead>
      <Button look="primary" onClick={() => navigate("/", { replace: true })}>
        Go to Parley
      </Button>
    </SignInFrame>
  );
}
