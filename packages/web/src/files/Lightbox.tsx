import { useAside, useMessages } from "@parley/client/react";
import { type KeyboardEvent, type RefObject, useEffect, useRef, useState } from "react";
import { type OpenPicture, useChatContext } from "../chat/context.ts";
import { useModal } from "../ui/Dialog.tsx";
import { Icon, type IconName } from "../ui/Icon.tsx";
import { formatSize, kindOf } from "./describe.ts";
import { useFileLink } from "./links.ts";
import { type ShownFile, useShownFiles } from "./shown-file.ts";
import { ZoomedPicture } from "./ZoomedPicture.tsx";
import type { Zoom } from "./zoom.ts";

interface LightboxProps extends OpenPicture {
  onClose: () => void;
}

/** The pictures of a message over the whole window. Closes when the message is deleted. */
export default function Lightbox({ messageId, index: opened, onClose }: LightboxProps) {
  const pictures = usePictures(messageId);
  const [index, setIndex] = useState(opened);
  const modal = useModal(onClose);
  const zoom = useRef<Zoom>(null);
  const file = pictures[index];
  const isGone = file === undefined;
  useEffect(() => {
    if (isGone) onClose();
  }, [isGone, onClose]);
  if (!file) return null;

  const isMany = pictures.length > 1;
  const move = (step: 1 | -1) => setIndex(Math.min(Math.max(index + step, 0), pictures.length - 1));
  const handleKey = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (handlesKey(event.key, move, zoom.current)) event.preventDefault();
  };
  return (
    <dialog
      {...modal}
      onKeyDown={handleKey}
      aria-label={isMany ? `${file.name}, ${index + 1} of ${pictures.length}` : file.name}
      className="m-0 h-dvh max-h-none w-screen max-w-none overflow-hidden bg-lightbox text-on-lightbox open:flex open:animate-fade open:flex-col"
    >
      <header className="flex items-center gap-1 p-2 pl-4">
        <p className="min-w-0 flex-1">
          <span dir="auto" className="block truncate text-left text-base font-medium">
            {file.name}
          </span>
          <span className="block text-xs opacity-80">
            {isMany && `${index + 1} of ${pictures.length} · `}
            {formatSize(file.size)}
          </span>
        </p>
        <Tools file={file} zoom={zoom} onClose={onClose} />
      </header>
      <div className="relative min-h-0 flex-1">
        <ZoomedPicture key={index} ref={zoom} file={file} onSwipe={move} onClose={onClose} />
        {isMany && (
          <>
            <Step label="Previous picture" isEnd={index === 0} onMove={() => move(-1)} />
            <Step
              label="Next picture"
              isEnd={index === pictures.length - 1}
              onMove={() => move(1)}
            />
          </>
        )}
      </div>
    </dialog>
  );
}

/** The pictures of a message, and none after it was deleted. */
function usePictures(messageId: string): readonly ShownFile[] {
  const { chat } = useChatContext();
  const live = useMessages(chat.id);
  const aside = useAside(chat.id);
  const all = [...live.items, ...(aside?.items ?? [])];
  const message =
    all.find(({ id }) => id === messageId) ??
    all.find(({ client_msg_id }) => client_msg_id === messageId);
  return useShownFiles(message).filter((file) => kindOf(file) === "picture");
}

/** False if the key has no meaning here. */
function handlesKey(key: string, move: (step: 1 | -1) => void, zoom: Zoom | null): boolean {
  if (key === "ArrowLeft") move(-1);
  else if (key === "ArrowRight") move(1);
  else if (key === "+" || key === "=") zoom?.zoomIn();
  else if (key === "-") zoom?.zoomOut();
  else if (key === "0") zoom?.reset();
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
      <Tool icon="minus" label="Zoom out" onClick={() => zoom.current?.zoomOut()} />
      <Tool icon="plus" label="Zoom in" onClick={() => zoom.current?.zoomIn()} />
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
  onClick: () => void;
}

function Tool({ icon, label, autofocus, onClick }: ToolProps) {
  return (
    <button
      type="button"
      aria-label={label}
      title={label}
      data-autofocus={autofocus}
      onClick={onClick}
      className={TOOL_LOOK}
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
      className={`absolute top-1/2 -mt-5 inline-flex size-10 items-center justify-center rounded-full bg-lightbox/70 transition-colors focus-visible:outline-on-lightbox aria-disabled:opacity-40 not-aria-disabled:hover:bg-lightbox pointer-coarse:size-11 ${isNext ? "right-3" : "left-3"}`}
    >
      <Icon name={isNext ? "next" : "back"} size={22} />
    </button>
  );
}
