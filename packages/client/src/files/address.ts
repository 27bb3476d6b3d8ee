/**
 * The absolute address of a link to a file. The service knows only the address by which a proxy
 * reaches it, so that of the client is used: it may have another scheme, host or path.
 */
export function resolveLink(url: string, link: string): string {
  const { pathname, search, href } = new URL(link, url);
  return pathname.startsWith("/files/") ? `${url}${pathname}${search}` : href;
}
