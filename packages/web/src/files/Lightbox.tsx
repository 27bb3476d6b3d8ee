import { type KeyboardEvent, type RefObject, useEffect, useRef, useState } from "react";
import type { OpenPicture } from "../chat/context.ts";
import { formatSize } from "../lib/format-size.ts";
import { nameOf } from "../lib/names.ts";
import { shortTime } from "../lib/time.ts";
import { useModal } from "../ui/Dialog.tsx";
import { Icon, type IconName } from "../ui/Icon.tsx";
import {
  type ConversationPicture,
  isSamePicture,
  useConversationPictures,
} from "./conversation-pictures.ts";
import { useFileLink } from "./links.ts";
import type { ShownFile } from "./shown-file.ts";
import { ZoomedPicture } from "./ZoomedPicture.tsx";
import type { Zoom } from "./zoom.ts";

interface LightboxProps extends OpenPicture {
  onClose: () => void;
}

/** The pictures of the loaded conversation over the whole window. Closes when the message is deleted. */
export default function Lightbox({ message, index, onClose }: LightboxProps) {
  const [open, setOpen] = useState<OpenPicture>({ message, index });
  const pictures = useConversationPictures(open.message, message);
  const modal = useModal(onClose);
  const zoom = useRef<Zoom>(null);
  const at = pictures.findIndex((each) => isSamePicture(each, open));
  const picture = pictures[at];
  const isGone = picture === undefined;
  useEffect(() => {
    if (isGone) onClose();
  }, [isGone, onClose]);
  if (!picture) return null;

  const { file } = picture;
  const isMany = pictures.length > 1;
  const move = (step: 1 | -1) => setOpen(pictures[at + step] ?? open);
  const handleKey = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (handlesKey(event.key, move, zoom.current)) event.preventDefault();
  };
  return (
    <dialog
      {...modal}
      onKeyDown={handleKey}
      aria-label={isMany ? `${file.name}, ${at + 1} of ${pictures.length}` : file.name}
      className="m-0 h-dvh max-h-none w-screen max-w-none overflow-hidden bg-lightbox text-on-lightbox open:flex open:animate-fade open:flex-col"
    >
      <header className="flex items-center gap-1 p-2 pl-4">
        <Caption {...picture} />
        <Tools file={file} zoom={zoom} onClose={onClose} />
      </header>
      <div className={`min-h-0 flex-1 ${isMany ? MANY_LOOK : "relative"}`}>
        <div className={isMany ? "relative max-sm:col-span-3 sm:col-start-2" : "absolute inset-0"}>
          <ZoomedPicture
            key={`${picture.message.client_msg_id ?? picture.message.id} ${picture.index}`}
            ref={zoom}
            file={file}
            onSwipe={move}
            onClose={onClose}
          />
        </div>
        {isMany && (
          <>
            <Step label="Previous picture" isEnd={at === 0} onMove={() => move(-1)} />
            <p className="text-center text-xs tabular-nums opacity-80 sm:col-start-2 sm:row-start-2">
              {at + 1} of {pictures.length}
            </p>
            <Step label="Next picture" isEnd={at === pictures.length - 1} onMove={() => move(1)} />
          </>
        )}
      </div>
    </dialog>
  );
}

/** The arrows stand beside the picture, on phones below it: they never cover it. */
const MANY_LOOK =
  "grid grid-rows-[minmax(0,1fr)_auto] items-center pb-[max(0.5rem,env(safe-area-inset-bottom))] max-sm:grid-cols-[auto_1fr_auto] max-sm:gap-y-2 max-sm:*:first:self-stretch sm:grid-cols-[4rem_minmax(0,1fr)_4rem] sm:gap-y-2 sm:*:first:self-stretch";

function Caption({ message: { sender, created_at }, file }: ConversationPicture) {
  return (
    <p className="min-w-0 flex-1">
      <span dir="auto" className="block truncate text-left text-base font-medium">
        {file.name}
      </span>
      <span className="block truncate text-xs opacity-80">
        {nameOf(sender)}, <time dateTime={created_at}>{shortTime(created_at)}</time> ·{" "}
        {formatSize(file.size)}
      </span>
    </p>
  );
}

/** How far keys scroll a long picture, as a part of the height of the window. */
const LINE = 0.1;
const PAGE = 0.9;

/** False if the key has no meaning here. */
function handlesKey(key: string, move: (step: 1 | -1) => void, zoom: Zoom | null): boolean {
  if (key === "ArrowLeft") move(-1);
  else if (key === "ArrowRight") move(1);
  else if (key === "+" || key === "=") zoom?.zoomIn();
  else if (key === "-") zoom?.zoomOut();
  else if (key === "0") zoom?.reset();
  else if (key === "ArrowUp") zoom?.scroll(-LINE);
  else if (key === "ArrowDown") zoom?.scroll(LINE);
  else if (key === "PageUp") zoom?.scroll(-PAGE);
  else if (key === "PageDown") zoom?.scroll(PAGE);
  else return false;
  return true;
}

interface ToolsProps {
  file: ShownFile;
  zoom: RefObject<Zoom | null>;
  onClose: () => void;
}

function Tools({ file, zoom, onClose }: ToolsProps) {
  const link = useFileLink(file.isSent ? file.id : null);
  return (
    <>
      <Tool
        icon="minus"
        label="Zoom out"
        className="max-sm:hidden"
        onClick={() => zoom.current?.zoomOut()}
      />
      <Tool
        icon="plus"
        label="Zoom in"
        className="max-sm:hidden"
        onClick={() => zoom.current?.zoomIn()}
      />
      <a
        href={link?.url ?? file.url}
        download={file.name}
        aria-label="Download"
        title="Download"
        className={TOOL_LOOK}
      >
        <Icon name="download" size={19} />
      </a>
      <Tool icon="close" label="Close" autofocus onClick={onClose} />
    </>
  );
}

const TOOL_LOOK =
  "inline-flex size-10 shrink-0 items-center justify-center rounded-md transition-colors hover:bg-on-lightbox/15 focus-visible:outline-on-lightbox pointer-coarse:size-11";

interface ToolProps {
  icon: IconName;
  label: string;
  autofocus?: boolean;
  className?: string;
  onClick: () => void;
}

function Tool({ icon, label, autofocus, className = "", onClick }: ToolProps) {
  return (
    <button
      type="button"
      aria-label={label}
      title={label}
      data-autofocus={autofocus}
      onClick={onClick}
      className={`${TOOL_LOOK} ${className}`}
    >
      <Icon name={icon} size={19} />
    </button>
  );
}

interface StepProps {
  label: "Previous picture" | "Next picture";
  /** There is no further picture. The button stays, because it may have the focus. */
  isEnd: boolean;
  onMove: () => void;
}

function Step({ label, isEnd, onMove }: StepProps) {
  const isNext = label === "Next picture";
  return (
    <button
      type="button"
      aria-label={label}
      aria-disabled={isEnd}
      title={label}
      onClick={onMove}
      className={`inline-flex size-11 items-center justify-center justify-self-center rounded-full transition-colors focus-visible:outline-on-lightbox aria-disabled:cursor-default aria-disabled:opacity-40 not-aria-disabled:hover:bg-on-lightbox/15 max-sm:mx-3 sm:row-start-1 ${isNext ? "sm:col-start-3" : "sm:col-start-1"}`}
    >
      <Icon name={isNext ? "next" : "back"} size={22} />
    </button>
  );
}
