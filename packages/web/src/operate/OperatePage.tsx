import { namesOf, operatePages, operatePath, type Route } from "../lib/router.ts";
import { Page } from "../shell/Page.tsx";
import { PageTabs } from "../ui/PageTabs.tsx";
import { Accounts } from "./Accounts.tsx";
import { AuditLog } from "./AuditLog.tsx";
import { Reports } from "./Reports.tsx";
import { State } from "./State.tsx";

type OperateRoute = Extract<Route, { name: "operate" }>;

const tabs = namesOf(operatePages).map((name) => [operatePath(name), operatePages[name]] as const);

/** The pages of operators. */
export default function OperatePage({ route: { page, filter } }: { route: OperateRoute }) {
  return (
    <Page title="Operator pages" intro="Accounts, reports and the state of the service.">
      <PageTabs label="Operator pages" tabs={tabs} open={operatePath(page)} />
      {page === "state" && <State />}
      {page === "accounts" && <Accounts filter={filter} />}
      {page === "reports" && <Reports filter={filter} />}
      {page === "audit" && <AuditLog filter={filter} />}
    </Page>
  );
}
