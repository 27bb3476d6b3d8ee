import { useClient } from "@parley/client/react";
import type { OutputOf } from "@parley/protocol";
import { useState } from "react";
import { useAction } from "../lib/action.ts";
import { Button } from "../ui/Button.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { DialogButtons, SubmitButtons } from "../ui/DialogButtons.tsx";
import { Form, FormProblem } from "../ui/Form.tsx";
import { AppCodeField } from "./CodeField.tsx";
import { explainProof, PasswordField } from "./proof.tsx";
import { QrCode } from "./QrCode.tsx";
import { RecoveryCodes } from "./RecoveryCodes.tsx";

type Secret = OutputOf<"beginSecondFactor">;

/** Sets a second factor up: password, then the app, then the recovery codes. */
export function SecondFactorSetup({ onClose }: { onClose: () => void }) {
  const [secret, setSecret] = useState<Secret | null>(null);
  const [codes, setCodes] = useState<readonly string[] | null>(null);
  return (
    <Dialog title={codes ? "Your recovery codes" : "Set up a second factor"} onClose={onClose}>
      {!secret && <PasswordStep onClose={onClose} onSecret={setSecret} />}
      {secret && !codes && <AppStep secret={secret} onConfirmed={setCodes} />}
      {codes && <RecoveryCodes codes={codes} onClose={onClose} />}
    </Dialog>
  );
}

const FORM = "flex min-h-0 flex-col gap-4 overflow-y-auto px-5 pb-5";

interface PasswordStepProps {
  onClose: () => void;
  onSecret: (secret: Secret) => void;
}

function PasswordStep({ onClose, onSecret }: PasswordStepProps) {
  const client = useClient();
  const { busy, error, run } = useAction();
  return (
    <Form
      error={error}
      explain={explainProof}
      className={FORM}
      onSubmit={({ raw }) =>
        void run(async () =>
          onSecret(await client.beginSecondFactor({ password: raw("password") })),
        )
      }
    >
      <p className="text-md text-ink-2">
        You need an authenticator app on your phone, or a password manager that shows codes.
      </p>
      <PasswordField />
      <FormProblem />
      <SubmitButtons action="Continue" busy={busy} onCancel={onClose} />
    </Form>
  );
}

interface AppStepProps {
  secret: Secret;
  onConfirmed: (recoveryCodes: readonly string[]) => void;
}

function AppStep({ secret, onConfirmed }: AppStepProps) {
  const client = useClient();
  const { busy, error, run } = useAction();
  return (
    <Form
      error={error}
      explain={explainProof}
      className={FORM}
      onSubmit={({ text }) =>
        void run(async () => {
          const confirmed = await client.confirmSecondFactor({ code: text("code") });
          onConfirmed(confirmed.recovery_codes);
        })
      }
    >
      <p className="text-md text-ink-2">
        Scan this with your app, or type the secret into it. Then enter the code that it shows. Your
        other devices are signed out.
      </p>
      <div className="flex flex-col items-center gap-3">
        <QrCode text={secret.otpauth_uri} label="QR code for your authenticator app" />
        <p className="text-center text-sm text-ink-3">
          <span className="sr-only">Secret: </span>
          <code className="font-mono break-all text-ink select-all">{inFours(secret.secret)}</code>
        </p>
        <a
          href={secret.otpauth_uri}
          className="rounded-sm text-sm font-medium text-accent underline-offset-2 hover:underline"
        >
          Open an app on this device
        </a>
      </div>
      <AppCodeField autoFocus />
      <FormProblem />
      <DialogButtons>
        <Button type="submit" look="primary" busy={busy}>
          Turn on
        </Button>
      </DialogButtons>
    </Form>
  );
}

const inFours = (secret: string) => secret.replace(/.{4}(?=.)/g, "$& ");
