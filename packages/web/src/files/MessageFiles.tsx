import type { LocalMessage } from "@parley/client";
import { kindOf } from "./describe.ts";
import { FileTile } from "./FileTile.tsx";
import { PictureGrid } from "./PictureGrid.tsx";
import { AudioPlayer, VideoPlayer } from "./Players.tsx";
import { type ShownFile, useShownFiles } from "./shown-file.ts";

interface MessageFilesProps {
  message: LocalMessage;
  mine: boolean;
}

/** The files of a message: its pictures as a grid, then players and tiles. */
export function MessageFiles({ message, mine }: MessageFilesProps) {
  const files = useShownFiles(message);
  const pictures = files.filter((file) => kindOf(file) === "picture");
  const others = files.filter((file) => kindOf(file) !== "picture");
  return (
    <div
      className={`flex max-w-full flex-col gap-1 not-first:mt-1 ${mine ? "items-end" : "items-start"}`}
    >
      {pictures.length > 0 && <PictureGrid message={message} pictures={pictures} />}
      {others.map((file) => {
        const View = viewOf(file);
        return <View key={file.id} file={file} />;
      })}
    </div>
  );
}

function viewOf(file: ShownFile) {
  const kind = kindOf(file);
  if (!file.isSent || file.status === "failed") return FileTile;
  if (kind === "video") return VideoPlayer;
  return kind === "audio" ? AudioPlayer : FileTile;
}
