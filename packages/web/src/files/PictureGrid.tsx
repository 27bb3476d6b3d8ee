import type { LocalMessage } from "@parley/client";
import { useChatContext } from "../chat/context.ts";
import { gridBox, SHOWN_PICTURES } from "./layout.ts";
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
      className={`grid max-w-full gap-0.5 overflow-hidden rounded-lg ${grids[shown.length] ?? ""}`}
    >
      {shown.map((file, index) => {
        const isMore = hidden > 0 && index === shown.length - 1;
        return (
          <button
            key={keyOf(message, index)}
            type="button"
            data-pressable
            aria-haspopup="dialog"
            aria-label={isMore ? `${file.name} and ${hidden} more` : undefined}
            title={file.name}
            onClick={() => onPicture({ messageId: message.client_msg_id ?? message.id, index })}
            className={`relative min-h-0 min-w-0 overflow-hidden bg-sunken focus-visible:outline-offset-[-3px] ${shown.length === 3 && index === 0 ? "row-span-2" : ""}`}
          >
            <Picture file={file} version="preview" className="object-cover" />
            <UploadProgress file={file} />
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

const grids: Record<number, string> = {
  2: "grid-cols-2",
  3: "grid-cols-2 grid-rows-2",
  4: "grid-cols-2 grid-rows-2",
};

/** Stays the same when the message and its files get their ids. */
const keyOf = ({ client_msg_id, id }: LocalMessage, index: number) =>
  `${client_msg_id ?? id} ${index}`;
