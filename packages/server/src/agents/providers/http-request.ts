import { providerErrors } from "./provider-errors.ts";

/** Appends to the path of a base URL and keeps its query. */
export function endpointUrl(baseUrl: string, path: (basePath: string) => string): URL {
  const url = new URL(baseUrl);
  url.pathname = path(url.pathname.replace(/\/+$/, ""));
  return url;
}

/** The API key as a header value, without the whitespace that copying may add around it. */
export function keyHeader(apiKey: string): string {
  const key = apiKey.trim();
  if (!/^[\x21-\x7e]+$/.test(key)) throw providerErrors.malformedKey();
  return key;
}
