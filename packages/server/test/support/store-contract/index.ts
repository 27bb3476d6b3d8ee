import { describe, test } from "bun:test";
import { accounts } from "./accounts.ts";
import { agents } from "./agents.ts";
import { auditLog } from "./audit-log.ts";
import { blocks, invitations } from "./blocks.ts";
import { changes } from "./changes.ts";
import { closing } from "./closing.ts";
import { components } from "./components.ts";
import { conversations } from "./conversations.ts";
import { erasures, messageScans } from "./erasures.ts";
import { files } from "./files.ts";
import { type Check, type OpenedStore, openFixture } from "./fixture.ts";
import { hidingAndDeleting } from "./hiding-and-deleting.ts";
import { history } from "./history.ts";
import { identities } from "./identities.ts";
import { importedMessages } from "./imported-messages.ts";
import { managedAccounts } from "./managed-accounts.ts";
import { messages } from "./messages.ts";
import { operators } from "./operators.ts";
import { order } from "./order.ts";
import { pictures } from "./pictures.ts";
import { preconditions } from "./preconditions.ts";
import { productUsers } from "./product-users.ts";
import { reactions } from "./reactions.ts";
import { reading } from "./reading.ts";
import { reports } from "./reports.ts";
import { restoring } from "./restoring.ts";
import { search } from "./search.ts";
import { secondFactors } from "./second-factors.ts";
import { serviceKeys } from "./service-keys.ts";
import { sessions } from "./sessions.ts";
import { spending } from "./spending.ts";
import { subscriptions } from "./subscriptions.ts";
import { tools } from "./tools.ts";
import { turns } from "./turns.ts";
import { unitsOfWork } from "./units-of-work.ts";
import { updates } from "./updates.ts";
import { webhooks } from "./webhooks.ts";

export type { OpenedStore };

/** Everything `Store` promises, for whichever backend. */
export function storeContract(name: string, open: () => Promise<OpenedStore>): void {
  const check: Check = (sentence, run) =>
    test(sentence, async () => {
      await using made = await openFixture(open);
      await run(made);
    });
  describe(`the store on ${name}`, () => {
    describe("units of work", () => unitsOfWork(check));
    describe("order", () => order(check));
    describe("accounts", () => accounts(check));
    describe("identities", () => identities(check));
    describe("operators", () => operators(check));
    describe("the audit log", () => auditLog(check));
    describe("blocks", () => blocks(check));
    describe("invitations", () => invitations(check));
    describe("reports", () => reports(check));
    describe("service keys", () => serviceKeys(check));
    describe("webhooks", () => webhooks(check));
    describe("tools", () => tools(check));
    describe("users of products", () => productUsers(check));
    describe("accounts as operators see them", () => managedAccounts(check));
    describe("erasures", () => erasures(check));
    describe("sessions", () => sessions(check));
    describe("second factors", () => secondFactors(check));
    describe("conversations", () => conversations(check));
    describe("pictures", () => pictures(check));
    describe("messages", () => messages(check));
    describe("imported messages", () => importedMessages(check));
    describe("message scans", () => messageScans(check));
    describe("hiding and deleting", () => hidingAndDeleting(check));
    describe("files", () => files(check));
    describe("reactions", () => reactions(check));
    describe("components", () => components(check));
    describe("reading", () => reading(check));
    describe("history", () => history(check));
    describe("updates", () => updates(check));
    describe("search", () => search(check));
    describe("agents", () => agents(check));
    describe("turns", () => turns(check));
    describe("spending", () => spending(check));
    describe("preconditions", () => preconditions(check));
    describe("the change log", () => changes(check));
    describe("subscriptions", () => subscriptions(check));
    describe("closing", () => closing(check));
    describe("restoring", () => restoring(check));
  });
}
