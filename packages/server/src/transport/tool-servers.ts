import { CLIENT_PATH, clientMetadata } from "../agents/tools/client-metadata.ts";
import type { Services } from "../operation.ts";
import type { Page } from "./http.ts";
import { originOf } from "./origin.ts";

/** Tells authorization servers of tool servers who Parley is. */
export const toolServerPages = ({ config }: Pick<Services, "config">): [string, Page][] => [
  [
    CLIENT_PATH,
    (request) => {
      const base = originOf(request, "", config.proxies).base ?? "";
      return Response.json({ client_id: `${base}${CLIENT_PATH}`, ...clientMetadata(base) });
    },
  ],
];
