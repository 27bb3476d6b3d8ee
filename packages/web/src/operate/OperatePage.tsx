import { operatePath, type Route } from "../lib/router.ts";
import { Page } from "../shell/Page.tsx";
import { Link } from "../ui/Link.tsx";
import { Accounts } from "./Accounts.tsx";
import { AuditLog } from "./AuditLog.tsx";
import { Reports } from "./Reports.tsx";
import { State } from "./State.tsx";

type OperateRoute = Extract<Route, { name: "operate" }>;

const tabs = [
  ["state", "Service"],
  ["accounts", "Accounts"],
  ["reports", "Reports"],
  ["audit", "Audit log"],
] as const;

/** The pages of operators. */
export default function OperatePage({ route: { page, filter } }: { route: OperateRoute }) {
  return (
    <Page title="Operator pages" intro="Accounts, reports and the state of the service.">
      <nav aria-label="Operator pages" className="flex gap-0.5 rounded-md bg-sunken p-0.5">
        {tabs.map(([name, label]) => (
          <Link
            key={name}
            to={operatePath(name)}
            aria-current={name === page ? "page" : undefined}
            className="flex h-8 flex-1 items-center justify-center rounded-sm px-2 text-sm font-medium whitespace-nowrap text-ink-2 transition-colors hover:text-ink aria-[current]:bg-chosen aria-[current]:text-ink aria-[current]:shadow-low forced-colors:aria-[current]:outline-2 pointer-coarse:h-10"
          >
            {label}
          </Link>
        ))}
      </nav>
      {page === "state" && <State />}
      {page === "accounts" && <Accounts filter={filter} />}
      {page === "reports" && <Reports filter={filter} />}
      {page === "audit" && <AuditLog filter={filter} />}
    </Page>
  );
}
