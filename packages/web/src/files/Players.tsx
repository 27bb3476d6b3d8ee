import { useState } from "react";
import { useLoadedLink } from "./links.ts";
import type { ShownFile } from "./shown-file.ts";

interface PlayerProps {
  file: ShownFile;
}

/** A video in a box of fixed size. Loads only its first bytes until it is played. */
export function VideoPlayer({ file }: PlayerProps) {
  const source = usePlayerSource(file);
  return (
    <video
      {...source}
      controls
      playsInline
      preload="metadata"
      aria-label={file.name}
      title={file.name}
      className="aspect-video w-80 max-w-full rounded-lg bg-lightbox not-focus-visible:outline not-focus-visible:-outline-offset-1 not-focus-visible:outline-ink/15"
    />
  );
}

export function AudioPlayer({ file }: PlayerProps) {
  const source = usePlayerSource(file);
  return (
    <div className="w-80 max-w-full rounded-lg border border-line bg-surface p-2">
      <p dir="auto" className="truncate px-1 pb-1 text-sm font-medium">
        {file.name}
      </p>
      <audio
        {...source}
        controls
        preload="metadata"
        aria-label={file.name}
        className="h-10 w-full"
      />
    </div>
  );
}

/** The address that a player loads. If it does not load, the link is renewed and tried once more. */
function usePlayerSource(file: ShownFile) {
  const { link, renew } = useLoadedLink(file.id);
  const [hasRetried, setRetried] = useState(false);
  const onError = () => {
    if (hasRetried || !link) return;
    setRetried(true);
    // If it fails, the player shows that it has nothing to play.
    renew().catch(() => {});
  };
  return { src: link?.url, onError };
}
