import { useClient } from "@parley/client/react";
import { useAction } from "../lib/action.ts";
import { Button } from "../ui/Button.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { DialogButtons, SubmitButtons } from "../ui/DialogButtons.tsx";
import { Form, FormProblem } from "../ui/Form.tsx";
import { Notice } from "../ui/Notice.tsx";
import { askedToConfirm } from "./confirmation.ts";
import { useSignInMethods } from "./methods.ts";
import { describeProblem, startOidcSignIn } from "./oidc.ts";
import { explainProof, PasswordField } from "./proof.tsx";

const WHY = "You signed in some time ago. Before this change, please confirm that it is you.";

/** Asks the person to confirm who they are, before a call that is sensitive. */
export default function Confirmation() {
  const asked = askedToConfirm.use();
  if (!asked) return null;
  const cancel = () => asked.answer(false);
  return (
    <Dialog title="Is it you?" onClose={cancel}>
      {asked.by === "password" ? (
        <ByPassword onConfirmed={() => asked.answer(true)} onCancel={cancel} />
      ) : (
        <BySignIn onCancel={cancel} />
      )}
    </Dialog>
  );
}

const LAYOUT = "flex min-h-0 flex-col gap-4 overflow-y-auto px-5 pb-5";

function ByPassword(props: { onConfirmed: () => void; onCancel: () => void }) {
  const client = useClient();
  const { busy, error, run } = useAction();
  const confirm = async (password: string) => {
    if (await run(() => client.confirmPassword({ password }))) props.onConfirmed();
  };
  return (
    <Form
      error={error}
      explain={explainProof}
      className={LAYOUT}
      onSubmit={({ raw }) => void confirm(raw("password"))}
    >
      <p className="text-md text-ink-2">{WHY}</p>
      <PasswordField />
      <FormProblem />
      <SubmitButtons action="Confirm" busy={busy} onCancel={props.onCancel} />
    </Form>
  );
}

/** The page is left, and comes back with a new session: what the person was doing has to be done again. */
function BySignIn({ onCancel }: { onCancel: () => void }) {
  const client = useClient();
  const issuer = useSignInMethods()?.oidc;
  const { busy, error, run } = useAction();
  return (
    <div className={LAYOUT}>
      <p className="text-md text-ink-2">
        {issuer
          ? `${WHY} You come back here after the sign-in: then make the change again.`
          : "You signed in some time ago. To make this change, sign out and sign in again."}
      </p>
      {error !== null && <Notice>{describeProblem(error)}</Notice>}
      <DialogButtons>
        <Button onClick={onCancel}>Cancel</Button>
        {issuer && (
          <Button
            look="primary"
            busy={busy}
            onClick={() => void run(() => startOidcSignIn(client, { again: true }))}
          >
            Sign in with {issuer.name}
          </Button>
        )}
      </DialogButtons>
    </div>
  );
}
