import { type Ref, useImperativeHandle, useRef } from "react";
import { Picture } from "./Picture.tsx";
import type { ShownFile } from "./shown-file.ts";
import { useZoom, type Zoom } from "./zoom.ts";

interface ZoomedPictureProps {
  ref: Ref<Zoom>;
  file: ShownFile;
  onSwipe: (step: 1 | -1) => void;
  onClose: () => void;
}

/** Smaller pictures are enlarged to this. */
const MIN_SIDE_PX = 96;

/** A picture that fits into its box, and can be zoomed and moved inside it. */
export function ZoomedPicture({ ref, file, onSwipe, onClose }: ZoomedPictureProps) {
  const box = useRef<HTMLDivElement>(null);
  const picture = useRef<HTMLDivElement>(null);
  const { zoom, handlers } = useZoom({ box, picture, onSwipe, onClose });
  useImperativeHandle(ref, () => zoom, [zoom]);
  return (
    <div ref={box} {...handlers} className="absolute inset-0 touch-none overflow-hidden">
      <div ref={picture} className="absolute inset-0">
        <div style={largestBox(file)} className="absolute inset-0 m-auto">
          <Picture file={file} version="full" className="object-contain" />
        </div>
      </div>
    </div>
  );
}

/** The size of the picture itself: only zooming enlarges it. */
const largestBox = ({ width, height }: ShownFile) =>
  width && height
    ? { maxWidth: Math.max(width, MIN_SIDE_PX), maxHeight: Math.max(height, MIN_SIDE_PX) }
    : {};
