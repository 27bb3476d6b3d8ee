import { useClient, useFileLinks } from "@parley/client/react";
import type { FileLinks } from "@parley/protocol";
import { useState } from "react";

/** The valid addresses of a file, for links that a person follows; undefined until they are known. */
export function useFileLink(id: string | null): FileLinks | undefined {
  const links = useFileLinks(id === null ? [] : [id]);
  return id === null ? undefined : links[id];
}

interface LoadedLink {
  link: FileLinks | undefined;
  /** Replaces the addresses, after one of them did not load. */
  renew: () => Promise<void>;
}

/**
 * The addresses from which an element loads a file. They stay the same when the links are renewed:
 * others would load the picture again, and stop a player.
 */
export function useLoadedLink(id: string | null): LoadedLink {
  const { links } = useClient();
  const valid = useFileLink(id);
  const [used, setUsed] = useState<FileLinks>();
  if (!used && valid) setUsed(valid);
  const renew = async () => {
    const [link] = id === null ? [] : await links.renew([id]);
    setUsed(link);
  };
  return { link: used, renew };
}
