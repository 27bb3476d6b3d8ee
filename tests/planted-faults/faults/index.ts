import type { Fault } from "../fault.ts";
import { access } from "./access.ts";
import { answers } from "./answers.ts";
import { events } from "./events.ts";
import { permissions } from "./permissions.ts";
import { retries } from "./retries.ts";
import { sdk } from "./sdk.ts";
import { secrets } from "./secrets.ts";
import { stores } from "./stores.ts";
import { web } from "./web.ts";

export const faults: readonly Fault[] = [
  ...permissions,
  ...events,
  ...answers,
  ...secrets,
  ...retries,
  ...sdk,
  ...web,
  ...access,
  ...stores,
];
