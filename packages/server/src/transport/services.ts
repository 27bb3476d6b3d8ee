import type { CallServices } from "../calls/invoke.ts";
import type { Needs } from "../calls/needs.ts";
import type { Changes } from "../changes/stream.ts";
import type { IncomingHooks } from "../domain/incoming-hooks.ts";
import type { Hub } from "../realtime/hub.ts";
import type { Authenticator } from "../security/authenticate.ts";

/** What transports use. */
export interface Services extends CallServices, Pick<Needs, "exports" | "files"> {
  readonly hub: Hub;
  readonly changes: Pick<Changes, "signalHere">;
  readonly authenticator: Authenticator;
  readonly incomingHooks: IncomingHooks;
}
