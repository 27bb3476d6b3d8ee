import { type ReactNode, useState } from "react";

interface PictureProps {
  /** Null: there is no picture, or its address is not known yet. */
  url: string | null;
  /** Classes of the shape, such as its rounding. */
  shape: string;
  /** Shown until the picture has loaded, and if it does not load. */
  children: ReactNode;
}

/** A square picture in the place of something else of the same size, so that nothing moves. */
export function Picture({ url, shape, children }: PictureProps) {
  const [loaded, setLoaded] = useState<string | null>(null);
  const [failed, setFailed] = useState<string | null>(null);
  if (url === null || url === failed) return children;
  return (
    <>
      {loaded === null && children}
      <img
        src={url}
        alt=""
        decoding="async"
        draggable={false}
        className={`absolute inset-0 size-full object-cover ${shape} ${loaded === null ? "opacity-0" : ""}`}
        onLoad={() => setLoaded(url)}
        onError={() => setFailed(url)}
      />
    </>
  );
}
