import { type Client, createClient } from "@parley/client";

const KEY = "parley.token";

/** Creates the client of the page, with the token of the last sign-in. */
export function openClient(): Client {
  const token = localStorage.getItem(KEY);
  const client = createClient({
    url: location.origin,
    storage: localStorage,
    ...(token !== null && { token }),
  });
  client.model.watch("status", () => {
    if (client.status === "signed_out") localStorage.removeItem(KEY);
    else rememberToken(client);
  });
  // The status shows whether the connection could be made.
  if (token !== null) void client.connect().catch(() => {});
  return client;
}

export function rememberToken(client: Client): void {
  if (client.token !== null) localStorage.setItem(KEY, client.token);
}
