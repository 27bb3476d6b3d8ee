import { useClient } from "@parley/client/react";
import type { InputOf } from "@parley/protocol";
import { useAction } from "../lib/action.ts";
import { codeOf } from "../lib/errors.ts";
import { Button } from "../ui/Button.tsx";
import { Form, FormProblem } from "../ui/Form.tsx";
import { CodeField } from "./CodeField.tsx";
import { rememberSignIn } from "./client.ts";
import { knownDevice } from "./device.ts";

export type Credentials = Pick<InputOf<"signIn">, "username" | "password">;

interface CodeStepProps {
  /** What the server has accepted already. */
  credentials: Credentials;
  onBack: () => void;
}

/** The second step of signing in: a code of the second factor. */
export function CodeStep({ credentials, onBack }: CodeStepProps) {
  const client = useClient();
  const { busy, error, run } = useAction();
  const signIn = async (code: string) => {
    const device = knownDevice(credentials.username);
    rememberSignIn(await client.enter("signIn", { ...credentials, ...device, code }));
  };
  return (
    <Form
      error={error}
      explain={explain}
      onSubmit={({ text }) => void run(() => signIn(text("code")))}
      className="flex flex-col gap-4 rounded-lg bg-raised p-5 shadow-pop"
    >
      <p className="text-base text-ink-2">
        The account <span className="font-medium text-ink">@{credentials.username}</span> is
        protected by a second factor.
      </p>
      <CodeField />
      <FormProblem />
      <div className="mt-1 flex flex-col gap-2">
        <Button type="submit" look="primary" busy={busy}>
          Sign in
        </Button>
        <Button look="quiet" onClick={onBack}>
          Back
        </Button>
      </div>
    </Form>
  );
}

const explain = (error: unknown) =>
  codeOf(error) === "second_factor_required"
    ? { code: "This code is wrong, or was used already." }
    : {};
