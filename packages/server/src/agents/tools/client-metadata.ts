/** Where browsers are sent back to: a page of the web client, which ends the authorization. */
export const CALLBACK_PATH = "/oauth/tool-servers/callback";
/** Describes Parley to authorization servers that fetch such a document. */
export const CLIENT_PATH = "/oauth/tool-servers/client.json";

export const clientMetadata = (base: string) => ({
  client_name: "Parley",
  redirect_uris: [`${base}${CALLBACK_PATH}`],
  grant_types: ["authorization_code", "refresh_token"],
  response_types: ["code"],
  token_endpoint_auth_method: "none",
});
