import { once } from "../../rules/once.ts";
import { asyncApi } from "./asyncapi.ts";
import { openApi } from "./openapi.ts";
import { referencePage } from "./page.ts";

export { referencePolicy } from "./page.ts";

/** In the place of the host, which is known with a request. */
export const HOST_PLACEHOLDER = "host.invalid";

/** The documents of the reference, each made on first use: that takes a few hundred milliseconds. */
export const documents = {
  page: once(referencePage),
  openApi: once(() => JSON.stringify(openApi())),
  asyncApi: once(() => JSON.stringify(asyncApi(HOST_PLACEHOLDER, false))),
  secureAsyncApi: once(() => JSON.stringify(asyncApi(HOST_PLACEHOLDER, true))),
};
