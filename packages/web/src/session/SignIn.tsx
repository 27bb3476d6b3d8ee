import { useClient } from "@parley/client/react";
import { type FormEvent, useEffect, useState } from "react";
import { codeOf, useAction, wordsFor } from "../lib/action.ts";
import { Button } from "../ui/Button.tsx";
import { TextField } from "../ui/Field.tsx";
import { Logo } from "../ui/Logo.tsx";
import { Notice } from "../ui/Notice.tsx";
import { rememberToken } from "./client.ts";

type How = "signIn" | "signUp";

const words = {
  signIn: {
    title: "Welcome back",
    button: "Sign in",
    ask: "New here?",
    other: "Create an account",
  },
  signUp: {
    title: "Create your account",
    button: "Create account",
    ask: "Have an account?",
    other: "Sign in",
  },
} as const;

/** Who has been here before most likely has an account. */
const VISITED = "parley.visited";

export function SignIn() {
  const [how, setHow] = useState<How>(() => (localStorage.getItem(VISITED) ? "signIn" : "signUp"));
  const { title, ask, other } = words[how];
  useEffect(() => {
    document.title = "Parley";
  }, []);
  return (
    <main className="flex h-full flex-col overflow-y-auto bg-canvas px-4 py-8">
      <div className="m-auto flex w-full max-w-sm flex-col gap-6">
        <div className="flex flex-col items-center gap-4 text-center">
          <Logo size={56} />
          <div>
            <h1 className="text-2xl font-semibold tracking-tight">{title}</h1>
            <p className="mt-1.5 text-md text-ink-2">Conversations of people and AI agents.</p>
          </div>
        </div>
        <SignInForm key={how} how={how} />
        <p className="text-center text-base text-ink-2">
          {ask}{" "}
          <button
            type="button"
            className="rounded-sm font-medium text-accent underline-offset-2 hover:underline"
            onClick={() => setHow(how === "signIn" ? "signUp" : "signIn")}
          >
            {other}
          </button>
        </p>
      </div>
    </main>
  );
}

function SignInForm({ how }: { how: How }) {
  const client = useClient();
  const { busy, error, run } = useAction();
  const [invited, setInvited] = useState(false);
  const enter = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const data = new FormData(event.currentTarget);
    const text = (name: string) => String(data.get(name) ?? "").trim();
    const credentials = {
      username: text("username"),
      password: String(data.get("password") ?? ""),
    };
    const name = text("display_name");
    const code = text("invite_code");
    await run(async () => {
      try {
        await client.enter(how, {
          ...credentials,
          ...(name !== "" && { display_name: name }),
          ...(code !== "" && { invite_code: code }),
        });
        rememberToken(client);
        localStorage.setItem(VISITED, "1");
      } catch (problem) {
        if (/invit/i.test(wordsFor(problem))) setInvited(true);
        throw problem;
      }
    });
  };
  return (
    <form onSubmit={enter} className="flex flex-col gap-4 rounded-lg bg-surface p-5 shadow-pop">
      {error !== null && (
        <div role="alert">
          <Notice tone="danger">{explain(error)}</Notice>
        </div>
      )}
      {how === "signUp" && (
        <TextField
          label="Your name"
          name="display_name"
          autoFocus
          autoComplete="name"
          maxLength={64}
          placeholder="Ada Lovelace"
        />
      )}
      <TextField
        label="Username"
        name="username"
        autoFocus={how === "signIn"}
        autoComplete="username"
        autoCapitalize="none"
        spellCheck={false}
        required
        minLength={2}
        maxLength={32}
        hint={how === "signUp" && "Letters, digits, underscores. It is your @handle."}
      />
      <TextField
        label="Password"
        name="password"
        type="password"
        autoComplete={how === "signUp" ? "new-password" : "current-password"}
        required
        minLength={how === "signUp" ? 8 : 1}
        hint={how === "signUp" && "At least 8 characters."}
      />
      {invited && how === "signUp" && <TextField label="Invite code" name="invite_code" required />}
      <Button type="submit" look="primary" busy={busy} className="mt-1">
        {words[how].button}
      </Button>
    </form>
  );
}

function explain(error: unknown): string {
  if (codeOf(error) === "unauthorized") return "That username and password do not fit together.";
  if (codeOf(error) === "conflict") return "That username is taken. Please choose another one.";
  return wordsFor(error);
}
