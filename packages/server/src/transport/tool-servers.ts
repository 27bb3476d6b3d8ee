import { CLIENT_PATH, clientMetadata } from "../agents/tools/client-metadata.ts";
import type { Route } from "./http.ts";
import { originOf } from "./origin.ts";
import type { Services } from "./services.ts";

/** Tells authorization servers of tool servers who Parley is. */
export const toolServerRoutes = ({ config }: Pick<Services, "config">): [string, Route][] => [
  [
    CLIENT_PATH,
    (request) => {
      const base = originOf(request, "", config.proxies).base ?? "";
      return Response.json({ client_id: `${base}${CLIENT_PATH}`, ...clientMetadata(base) });
    },
  ],
];
