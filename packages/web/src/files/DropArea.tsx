import { type DragEvent, type ReactNode, useEffect, useState } from "react";
import { Icon } from "../ui/Icon.tsx";
import { type Attachments, useAttachments } from "./attachments.ts";
import { droppedFiles, hasFiles } from "./transfer.ts";

interface DropAreaProps {
  /** The conversation takes no files now. */
  isClosed: boolean;
  className: string;
  children: ReactNode;
}

/** The conversation. Files that are dropped anywhere onto it are attached to the next message. */
export function DropArea({ isClosed, className, children }: DropAreaProps) {
  const { add } = useAttachments();
  const { handlers, isOver } = useDrops(add);
  useIgnoredDrops();
  return (
    <main {...(isClosed ? {} : handlers)} className={`relative ${className}`}>
      {children}
      {isOver && !isClosed && <Target />}
    </main>
  );
}

function useDrops(onFiles: Attachments["add"]) {
  const [isOver, setOver] = useState(false);
  const isLeaving = ({ currentTarget, relatedTarget }: DragEvent<HTMLElement>) =>
    !(relatedTarget instanceof Node && currentTarget.contains(relatedTarget));
  const handlers = {
    onDragEnter: ({ dataTransfer }: DragEvent) => hasFiles(dataTransfer) && setOver(true),
    onDragOver(event: DragEvent) {
      if (!hasFiles(event.dataTransfer)) return;
      event.preventDefault();
      event.dataTransfer.dropEffect = "copy";
    },
    onDragLeave: (event: DragEvent<HTMLElement>) => isLeaving(event) && setOver(false),
    onDrop(event: DragEvent) {
      setOver(false);
      if (!hasFiles(event.dataTransfer)) return;
      event.preventDefault();
      const { files, problem } = droppedFiles(event.dataTransfer);
      onFiles(files, problem);
    },
  };
  return { handlers, isOver };
}

function Target() {
  return (
    <div className="pointer-events-none absolute inset-2 z-20 flex animate-fade flex-col items-center justify-center gap-2 rounded-lg border-2 border-dashed border-accent bg-accent-soft/90 text-lg font-semibold text-accent">
      <Icon name="attach" size={28} />
      Drop files to attach them
    </div>
  );
}

/** Ignores files that are dropped elsewhere: the browser would leave the page to show them. */
function useIgnoredDrops(): void {
  useEffect(() => {
    const ignore = (event: globalThis.DragEvent) => {
      if (event.defaultPrevented || !event.dataTransfer || !hasFiles(event.dataTransfer)) return;
      event.preventDefault();
      event.dataTransfer.dropEffect = "none";
    };
    addEventListener("dragover", ignore);
    addEventListener("drop", ignore);
    return () => {
      removeEventListener("dragover", ignore);
      removeEventListener("drop", ignore);
    };
  }, []);
}
