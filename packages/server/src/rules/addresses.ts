/** Whether the host of a URL is this machine itself. The URL parser writes IPv4 addresses as four numbers. */
export const isLoopbackHost = (hostname: string): boolean =>
  hostname === "localhost" || hostname === "[::1]" || /^127(\.\d{1,3}){3}$/.test(hostname);

/**
 * Whether responses from an address that the operator configured cannot be tampered with in transit:
 * https, or http to this machine.
 */
export function isTamperProof(address: string): boolean {
  const url = URL.parse(address);
  if (url?.protocol === "https:") return true;
  return url?.protocol === "http:" && isLoopbackHost(url.hostname);
}
