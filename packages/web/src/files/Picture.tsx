import { useStatus } from "@parley/client/react";
import type { FileLinks } from "@parley/protocol";
import { useEffect, useState } from "react";
import { useConnection } from "../lib/connection.ts";
import { Icon } from "../ui/Icon.tsx";
import { useLoadedLink } from "./links.ts";
import type { ShownFile } from "./shown-file.ts";

/** The small one for lists, or the picture itself. */
type Version = "preview" | "full";

interface PictureProps {
  file: ShownFile;
  version: Version;
  className: string;
}

/** A picture in a box of fixed size, with its placeholder until it has loaded. */
export function Picture({ file, version, className }: PictureProps) {
  const { src, link, isLoaded, isMissing, onLoad, onError, attempt } = usePictureSource(
    file,
    version,
  );
  const isAway = useConnection() !== "up" && !src;
  // The list has loaded the preview already.
  const backdrop = (version === "full" && link?.preview_url) || file.placeholder;
  return (
    <>
      {!isLoaded && backdrop && (
        <img src={backdrop} alt="" className={`absolute inset-0 size-full ${className}`} />
      )}
      {src && !isMissing ? (
        <img
          key={attempt}
          src={src}
          alt={file.name}
          draggable={false}
          onLoad={onLoad}
          onError={onError}
          className={`absolute inset-0 size-full ${className} ${isLoaded ? "" : "opacity-0"}`}
        />
      ) : (
        <span className="sr-only">{file.name}</span>
      )}
      {(isMissing || isAway) && (
        <span className="absolute inset-0 flex flex-col items-center justify-center gap-1 bg-sunken p-2 text-center text-xs text-ink-2">
          <Icon name={isMissing ? "alert" : "offline"} size={16} />
          {file.status === "failed"
            ? "No longer available"
            : isMissing
              ? "Could not be loaded"
              : "Not stored on this device"}
        </span>
      )}
    </>
  );
}

/** The address of a picture. If it does not load, the link is renewed and tried once more. */
function usePictureSource(file: ShownFile, version: Version) {
  const isOnline = useStatus() === "online";
  const { link, renew } = useLoadedLink(file.isSent ? file.id : null);
  const [attempt, setAttempt] = useState(0);
  const [isLoaded, setLoaded] = useState(false);
  const [isMissing, setMissing] = useState(false);
  /** The client has freed the local copy. */
  const [brokenUrl, setBrokenUrl] = useState<string>();
  useEffect(() => {
    if (!isOnline) return;
    setMissing(false);
    setAttempt(0);
  }, [isOnline]);
  const local = file.url === brokenUrl ? undefined : file.url;
  const onError = () => {
    if (local !== undefined) return setBrokenUrl(local);
    if (attempt > 0) return setMissing(true);
    renew().then(
      () => setAttempt(1),
      () => setMissing(true),
    );
  };
  return {
    src: local ?? addressOf(link, version),
    link,
    attempt,
    isLoaded,
    isMissing: isMissing || file.status === "failed",
    onLoad: () => setLoaded(true),
    onError,
  };
}

const addressOf = (link: FileLinks | undefined, version: Version) =>
  version === "preview" ? (link?.preview_url ?? link?.url) : link?.url;
