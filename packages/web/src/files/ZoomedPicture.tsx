import { type Ref, useImperativeHandle, useRef } from "react";
import { Picture } from "./Picture.tsx";
import type { ShownFile } from "./shown-file.ts";
import { enlarged } from "./view.ts";
import { useZoom, type Zoom } from "./zoom.ts";

interface ZoomedPictureProps {
  ref: Ref<Zoom>;
  file: ShownFile;
  onSwipe: (step: 1 | -1) => void;
  onClose: () => void;
}

/** A picture that fits into its box, and can be zoomed and moved inside it. */
export function ZoomedPicture({ ref, file, onSwipe, onClose }: ZoomedPictureProps) {
  const box = useRef<HTMLDivElement>(null);
  const picture = useRef<HTMLDivElement>(null);
  const { zoom, handlers } = useZoom({ box, picture, file, onSwipe, onClose });
  useImperativeHandle(ref, () => zoom, [zoom]);
  return (
    <div ref={box} {...handlers} className="absolute inset-0 touch-none overflow-hidden">
      <div
        ref={picture}
        className="absolute inset-0 flex items-center justify-center [container-type:size]"
      >
        <div style={fittedStyle(file)} className="relative shrink-0">
          <Picture file={file} version="full" className="object-contain" />
        </div>
      </div>
    </div>
  );
}

/** The size of the picture itself, or as much as fits: only zooming enlarges it. `fittedSize` in CSS. */
function fittedStyle({ width, height }: ShownFile) {
  if (!width || !height) return { width: "100cqw", height: "100cqh" };
  const ratio = width / height;
  const own = Math.min(enlarged(width), enlarged(height) * ratio);
  return { width: `min(100cqw, ${100 * ratio}cqh, ${own}px)`, aspectRatio: ratio };
}
