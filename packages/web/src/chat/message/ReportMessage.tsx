import { useClient } from "@parley/client/react";
import { useAction } from "../../lib/action.ts";
import { toast } from "../../lib/toasts.ts";
import { Dialog } from "../../ui/Dialog.tsx";
import { SubmitButtons } from "../../ui/DialogButtons.tsx";
import { Field } from "../../ui/Field.tsx";
import { Form, FormProblem, type FormValues } from "../../ui/Form.tsx";

interface ReportMessageProps {
  messageId: string;
  onClose: () => void;
}

/** Asks for a reason and reports a message to the operators. */
export default function ReportMessage({ messageId, onClose }: ReportMessageProps) {
  const client = useClient();
  const { busy, error, run } = useAction();
  const report = ({ text }: FormValues) =>
    void run(async () => {
      await client.reportMessage({ message_id: messageId, reason: text("reason") });
      onClose();
      toast("Reported to those who run this service.");
    });
  return (
    <Dialog title="Report this message?" onClose={onClose}>
      <Form
        error={error}
        onSubmit={report}
        className="flex min-h-0 flex-col gap-4 overflow-y-auto px-5 pb-5"
      >
        <p className="text-md text-ink-2">
          Those who run this service will see it, up to five messages around it, and your name. The
          sender is not told.
        </p>
        <Field label="What is wrong with it?" name="reason">
          {(attributes) => (
            <textarea
              {...attributes}
              name="reason"
              rows={3}
              required
              maxLength={1000}
              className="field"
            />
          )}
        </Field>
        <FormProblem />
        <SubmitButtons action="Report" look="danger" busy={busy} onCancel={onClose} />
      </Form>
    </Dialog>
  );
}
