import type { InputOf } from "@parley/protocol";
import type { ReactNode } from "react";
import { useAction } from "../lib/action.ts";
import { SubmitButtons } from "../ui/DialogButtons.tsx";
import { Form, FormProblem } from "../ui/Form.tsx";
import { CodeField } from "./CodeField.tsx";
import { explainProof, PasswordField } from "./proof.tsx";

interface ProofFormProps {
  /** The consequence of the action. */
  children: ReactNode;
  /** The label of the button. */
  action: string;
  look?: "danger" | "primary";
  onClose: () => void;
  onSubmit: (proof: InputOf<"removeSecondFactor">) => Promise<void>;
}

/** Asks for password and code before a change of the second factor: the content of a dialog. */
export function ProofForm(props: ProofFormProps) {
  const { children, action, look = "primary", onClose, onSubmit } = props;
  const { busy, error, run } = useAction();
  return (
    <Form
      error={error}
      explain={explainProof}
      className="flex min-h-0 flex-col gap-4 overflow-y-auto px-5 pb-5"
      onSubmit={({ raw, text }) =>
        void run(() => onSubmit({ password: raw("password"), code: text("code") }))
      }
    >
      <p className="text-md text-ink-2">{children}</p>
      <PasswordField />
      <CodeField autoFocus={false} />
      <FormProblem />
      <SubmitButtons action={action} look={look} busy={busy} onCancel={onClose} />
    </Form>
  );
}
