import { useClient } from "@parley/client/react";
import { lazy, Suspense, useEffect, useState } from "react";
import { useAction } from "../lib/action.ts";
import { codeOf, concerns } from "../lib/errors.ts";
import type { FieldErrors } from "../lib/validation.ts";
import { Button } from "../ui/Button.tsx";
import { TextField } from "../ui/Field.tsx";
import { Form, FormProblem, type FormValues } from "../ui/Form.tsx";
import { Icon } from "../ui/Icon.tsx";
import { CodeStep, type Credentials } from "./CodeStep.tsx";
import { followSignIn, hasVisited, rememberSignIn, signInNotice } from "./client.ts";
import { knownDevice } from "./device.ts";
import { type SignInMethods, useSignInMethods } from "./methods.ts";
import { Masthead, SignInFrame } from "./SignInFrame.tsx";

const OidcButton = lazy(() => import("./OidcButton.tsx"));
const ForgottenPassword = lazy(() => import("./ForgottenPassword.tsx"));

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

export default function SignIn() {
  const methods = useSignInMethods();
  useEffect(() => {
    document.title = "Parley";
  }, []);
  useEffect(followSignIn, []);
  return <SignInFrame>{methods && <Methods methods={methods} />}</SignInFrame>;
}

/** The forms and buttons of the ways to sign in that the server offers. */
function Methods({ methods }: { methods: SignInMethods }) {
  const { password, oidc } = methods;
  const notice = signInNotice.use();
  const canSignUp = methods.sign_up !== "closed";
  const [wanted, setHow] = useState<How>(() => (hasVisited() ? "signIn" : "signUp"));
  const how = canSignUp ? wanted : "signIn";
  const { title, ask, other } = words[how];
  return (
    <>
      <Masthead title={password || hasVisited() ? title : "Welcome"}>
        Conversations of people and AI agents.
      </Masthead>
      {notice !== null && <SignInNotice text={notice} />}
      <Suspense>{oidc && <OidcButton name={oidc.name} isOnly={!password} />}</Suspense>
      {password && <SignInForm key={how} how={how} asksInvite={methods.sign_up === "invite"} />}
      {password && canSignUp && (
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
      )}
      {!password && !oidc && (
        <p className="text-center text-base text-ink-2">
          People sign in here through another service, which brings them to this page.
        </p>
      )}
    </>
  );
}

/** Why the page is shown, which is rarely an error. */
const SignInNotice = ({ text }: { text: string }) => (
  <p
    role="alert"
    className="flex animate-fade items-start gap-2 rounded-md border border-line bg-surface px-3 py-2.5 text-base text-ink-2"
  >
    <span className="mt-0.5 text-accent">
      <Icon name="info" size={17} />
    </span>
    <span className="min-w-0 break-words">{text}</span>
  </p>
);

function SignInForm({ how, asksInvite }: { how: How; asksInvite: boolean }) {
  const { busy, error, needsInvite, accepted, setAccepted, enter } = useSignIn(how, asksInvite);
  if (accepted) return <CodeStep credentials={accepted} onBack={() => setAccepted(null)} />;
  return (
    <Form
      error={error}
      explain={explain}
      onSubmit={enter}
      className="flex flex-col gap-4 rounded-lg bg-raised p-5 shadow-pop"
    >
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
        {...(how === "signUp" && {
          minLength: 2,
          pattern: "\\s*[A-Za-z0-9_]+\\s*",
          title: "Letters, digits and underscores only.",
        })}
        maxLength={32}
        hint={how === "signUp" && "Letters, digits, underscores. It is your @handle."}
      />
      <TextField
        label="Password"
        name="password"
        type="password"
        autoComplete={how === "signUp" ? "new-password" : "current-password"}
        required
        minLength={how === "signUp" ? 8 : 0}
        maxLength={1024}
        hint={how === "signUp" && "At least 8 characters."}
      />
      {how === "signIn" && <Forgotten />}
      {needsInvite && how === "signUp" && (
        <TextField label="Invite code" name="invite_code" required />
      )}
      <FormProblem />
      <Button type="submit" look="primary" busy={busy} className="mt-1">
        {words[how].button}
      </Button>
    </Form>
  );
}

function Forgotten() {
  const [isOpen, setOpen] = useState(false);
  return (
    <div className="-mt-2 flex">
      <button
        type="button"
        className="rounded-sm text-sm font-medium text-accent underline-offset-2 hover:underline"
        onClick={() => setOpen(true)}
      >
        Forgot your password?
      </button>
      <Suspense>{isOpen && <ForgottenPassword onClose={() => setOpen(false)} />}</Suspense>
    </div>
  );
}

/**
 * Signs in or up with the values of the form. Asks for an invite code once the server wants one.
 * `accepted` is set once the server has accepted the password and wants a code of the second factor.
 */
function useSignIn(how: How, asksInvite: boolean) {
  const client = useClient();
  const { busy, error, run } = useAction();
  const [needsInvite, setNeedsInvite] = useState(asksInvite);
  const [accepted, setAccepted] = useState<Credentials | null>(null);
  const enter = ({ text, raw }: FormValues) => {
    const credentials = { username: text("username"), password: raw("password") };
    const name = text("display_name");
    const code = text("invite_code");
    void run(async () => {
      try {
        const entered = await client.enter(how, {
          ...credentials,
          ...(how === "signIn" && knownDevice(credentials.username)),
          ...(name !== "" && { display_name: name }),
          ...(code !== "" && { invite_code: code }),
        });
        rememberSignIn(entered);
      } catch (problem) {
        if (isAboutInvite(problem)) setNeedsInvite(true);
        if (codeOf(problem) === "second_factor_required") return setAccepted(credentials);
        throw problem;
      }
    });
  };
  return { busy, error, needsInvite, accepted, setAccepted, enter };
}

const isAboutInvite = (error: unknown) => concerns(error, "invite_code");

function explain(error: unknown): FieldErrors {
  const code = codeOf(error);
  if (code === "unauthorized")
    return { password: "That username and password do not fit together." };
  if (code === "conflict")
    return { username: "This username is taken. Please choose another one." };
  if (isAboutInvite(error)) return { invite_code: "You need an invitation to sign up here." };
  return {};
}
