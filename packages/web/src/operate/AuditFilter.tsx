import { auditActions } from "@parley/protocol/records/audit-actions";
import { navigate, operatePath } from "../lib/router.ts";
import { Button } from "../ui/Button.tsx";
import { Field, TextField } from "../ui/Field.tsx";
import { Form, type FormValues } from "../ui/Form.tsx";
import { actionLabel } from "./audit-sentences.ts";

interface AuditFilterProps {
  values: { action: string; account: string; since: string };
  busy: boolean;
  onRefresh: () => void;
}

const actions = [...auditActions]
  .map((action) => ({ action, label: actionLabel(action) }))
  .sort((one, other) => one.label.localeCompare(other.label));

/** Which entries of the audit log to show. The filter is in the address of the page. */
export function AuditFilter({ values, busy, onRefresh }: AuditFilterProps) {
  const current = operatePath("audit", values);
  const apply = ({ text }: FormValues) => {
    const account = text("account").replace(/^@/, "").toLowerCase();
    const path = operatePath("audit", { action: text("action"), account, since: text("since") });
    if (path === current) onRefresh();
    else navigate(path);
  };
  return (
    <Form
      error={null}
      onSubmit={apply}
      className="flex flex-col gap-4 rounded-lg border border-line bg-surface p-4 shadow-low"
    >
      <div className="grid gap-4 sm:grid-cols-3">
        <Field label="What happened" name="action">
          {(attributes) => (
            <select {...attributes} name="action" defaultValue={values.action} className="field">
              <option value="">Everything</option>
              {actions.map(({ action, label }) => (
                <option key={action} value={action}>
                  {label}
                </option>
              ))}
            </select>
          )}
        </Field>
        <TextField
          label="Account"
          name="account"
          defaultValue={values.account}
          placeholder="Username"
          autoCapitalize="none"
          autoComplete="off"
          spellCheck={false}
          pattern="\s*@?[A-Za-z0-9_]{2,32}\s*"
          title="A whole username: letters, digits and underscores."
        />
        <TextField label="Since" name="since" type="date" defaultValue={values.since} />
      </div>
      <div className="flex flex-wrap gap-2">
        <Button type="submit" look="primary" busy={busy}>
          Show
        </Button>
        {current !== operatePath("audit") && (
          <Button onClick={() => navigate(operatePath("audit"))}>Clear the filter</Button>
        )}
      </div>
    </Form>
  );
}
