/** Whether what is fetched from there cannot be changed on the way: https, or this machine itself. */
export function isSafeAddress(address: string): boolean {
  if (!URL.canParse(address)) return false;
  const { protocol, hostname } = new URL(address);
  if (protocol === "https:") return true;
  return protocol === "http:" && /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
}
