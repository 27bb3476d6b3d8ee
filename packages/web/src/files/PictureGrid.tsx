import type { LocalMessage } from "@parley/client";
import { useChatContext } from "../chat/context.ts";
import { Icon } from "../ui/Icon.tsx";
import { cropOf, gridBox, isLight, SHOWN_PICTURES } from "./layout.ts";
import { Picture } from "./Picture.tsx";
import type { ShownFile } from "./shown-file.ts";
import { UploadProgress } from "./UploadProgress.tsx";

interface PictureGridProps {
  message: LocalMessage;
  pictures: readonly ShownFile[];
}

/**
 * The pictures of a message in a box of known size: one in its own shape, two side by side, a large one
 * and two small ones, or four, of which the last says how many more there are.
 */
export function PictureGrid({ message, pictures }: PictureGridProps) {
  const { onPicture } = useChatContext();
  const shown = pictures.slice(0, SHOWN_PICTURES);
  const hidden = pictures.length - shown.length;
  const { width, height } = gridBox(pictures);
  return (
    <div
      style={{ width, aspectRatio: `${width} / ${height}` }}
      className={`grid max-w-full gap-0.5 ${grids[shown.length] ?? ""}`}
    >
      {shown.map((file, index) => {
        const isMore = hidden > 0 && index === shown.length - 1;
        const crop = cropOf(file);
        return (
          <button
            key={keyOf(message, index)}
            type="button"
            data-pressable
            aria-haspopup="dialog"
            aria-label={isMore ? `${file.name} and ${hidden} more` : undefined}
            title={file.name}
            onClick={() => onPicture({ message, index })}
            className={`relative min-h-0 min-w-0 overflow-hidden bg-sunken focus-visible:outline-offset-[-3px] ${EDGE} ${corners[shown.length]?.[index] ?? ""} ${shown.length === 3 && index === 0 ? "row-span-2" : ""}`}
          >
            <Picture
              file={file}
              version={crop && isLight(file) ? "full" : "preview"}
              className={`object-cover ${crop === "long" ? "object-top" : ""}`}
            />
            {crop && !isMore && <CropHint crop={crop} />}
            <UploadProgress file={file} on="picture" />
            {file.error !== undefined && <RefusedMark />}
            {isMore && (
              <span
                aria-hidden="true"
                className="absolute inset-0 flex items-center justify-center bg-lightbox/60 text-xl font-semibold text-on-lightbox"
              >
                +{hidden}
              </span>
            )}
          </button>
        );
      })}
    </div>
  );
}

/** Says that a picture is cropped. */
const CropHint = ({ crop }: { crop: "long" | "wide" }) => (
  <span className="absolute bottom-1.5 left-1.5 rounded-full bg-lightbox/70 px-2 text-2xs leading-5 font-medium text-on-lightbox">
    {crop === "long" ? "Long picture" : "Wide picture"}
  </span>
);

/** Lies over a picture whose upload was refused. */
const RefusedMark = () => (
  <span className="absolute inset-0 flex items-center justify-center bg-lightbox/60 text-on-lightbox">
    <Icon name="alert" size={24} />
  </span>
);

/** A hairline over the picture, so that a white one has a visible edge on a light page. */
const EDGE =
  "after:pointer-events-none after:absolute after:inset-0 after:rounded-[inherit] after:inset-ring after:inset-ring-ink/15";

/** The corners of each picture, of which the outer ones are rounder, by the number of pictures. */
const corners: Record<number, readonly string[]> = {
  1: ["rounded-lg"],
  2: ["rounded-xs rounded-l-lg", "rounded-xs rounded-r-lg"],
  3: ["rounded-xs rounded-l-lg", "rounded-xs rounded-tr-lg", "rounded-xs rounded-br-lg"],
  4: [
    "rounded-xs rounded-tl-lg",
    "rounded-xs rounded-tr-lg",
    "rounded-xs rounded-bl-lg",
    "rounded-xs rounded-br-lg",
  ],
};

const grids: Record<number, string> = {
  2: "grid-cols-2",
  3: "grid-cols-2 grid-rows-2",
  4: "grid-cols-2 grid-rows-2",
};

/** Stays the same when the message and its files get their ids. */
const keyOf = ({ client_msg_id, id }: LocalMessage, index: number) =>
  `${client_msg_id ?? id} ${index}`;
