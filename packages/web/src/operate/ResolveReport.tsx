import { useClient } from "@parley/client/react";
import type { Report } from "@parley/protocol";
import { toast } from "../lib/toasts.ts";
import { Dialog } from "../ui/Dialog.tsx";
import { SubmitButtons } from "../ui/DialogButtons.tsx";
import { Field } from "../ui/Field.tsx";
import { Form, FormProblem, type FormValues } from "../ui/Form.tsx";
import { useOperatorAction } from "./calls.ts";

interface ResolveReportProps {
  report: Report;
  onClose: () => void;
  onResolved: (report: Report) => void;
}

/** Asks for a note and resolves a report. */
export function ResolveReport({ report, onClose, onResolved }: ResolveReportProps) {
  const client = useClient();
  const { busy, error, run } = useOperatorAction();
  const resolve = ({ text }: FormValues) =>
    void run(async () => {
      const note = text("note");
      const resolved = await client.resolveReport({
        report_id: report.id,
        ...(note !== "" && { note }),
      });
      onClose();
      onResolved(resolved);
      toast("The report is resolved.");
    });
  return (
    <Dialog title="Resolve this report?" onClose={onClose}>
      <Form
        error={error}
        onSubmit={resolve}
        className="flex min-h-0 flex-col gap-4 overflow-y-auto px-5 pb-5"
      >
        <Field label="Note" name="note" hint="Optional: what was done, for other operators.">
          {(attributes) => (
            <textarea {...attributes} name="note" rows={3} maxLength={1000} className="field" />
          )}
        </Field>
        <FormProblem />
        <SubmitButtons action="Resolve" busy={busy} onCancel={onClose} />
      </Form>
    </Dialog>
  );
}
