import { useEffect, useState } from "react";
import { describeError } from "../lib/errors.ts";
import { formatSize } from "../lib/format-size.ts";
import { Button } from "../ui/Button.tsx";
import { useModal } from "../ui/Dialog.tsx";
import { Icon } from "../ui/Icon.tsx";
import { Notice } from "../ui/Notice.tsx";
import { useFileLink } from "./links.ts";
import type { ShownFile } from "./shown-file.ts";

interface PdfPreviewProps {
  file: ShownFile;
  onClose: () => void;
}

/** A PDF over the whole window, in the viewer of the browser. */
export default function PdfPreview({ file, onClose }: PdfPreviewProps) {
  const modal = useModal(onClose);
  const link = useFileLink(file.id);
  const { url, error } = useBytes(link?.url);
  return (
    <dialog
      {...modal}
      aria-label={file.name}
      className="m-0 h-dvh max-h-none w-screen max-w-none overflow-hidden bg-lightbox text-on-lightbox open:flex open:animate-fade open:flex-col"
    >
      <header className="flex items-center gap-1 p-2 pl-4">
        <p className="min-w-0 flex-1">
          <span dir="auto" className="block truncate text-left text-base font-medium">
            {file.name}
          </span>
          <span className="block truncate text-xs opacity-80">{formatSize(file.size)}</span>
        </p>
        <a
          href={link?.url}
          download={file.name}
          aria-label="Download"
          title="Download"
          className={TOOL}
        >
          <Icon name="download" size={19} />
        </a>
        <button type="button" aria-label="Close" title="Close" className={TOOL} onClick={onClose}>
          <Icon name="close" size={19} />
        </button>
      </header>
      {error !== null && (
        <div className="m-auto flex flex-col items-center gap-4 p-4">
          <Notice>{describeError(error)}</Notice>
          <Button onClick={onClose}>Close</Button>
        </div>
      )}
      {url !== null && <iframe title={file.name} src={url} className="min-h-0 flex-1 border-0" />}
    </dialog>
  );
}

const TOOL =
  "inline-flex size-10 shrink-0 items-center justify-center rounded-md transition-colors hover:bg-white/15";

/**
 * The address of a copy of the file in the page: the server serves documents as downloads only. Its
 * type is that of a PDF whatever it contains, so that it cannot run as a page.
 */
function useBytes(link: string | undefined) {
  const [loaded, setLoaded] = useState<{ url: string | null; error: unknown }>(NOTHING);
  useEffect(() => {
    if (link === undefined) return;
    const ended = new AbortController();
    let url: string | null = null;
    const load = async () => {
      const response = await fetch(link, { signal: ended.signal });
      if (!response.ok) throw new Error("The file could not be loaded.");
      const bytes = await response.arrayBuffer();
      ended.signal.throwIfAborted();
      url = URL.createObjectURL(new Blob([bytes], { type: "application/pdf" }));
      setLoaded({ url, error: null });
    };
    load().catch((error: unknown) => {
      if (!ended.signal.aborted) setLoaded({ url: null, error });
    });
    return () => {
      ended.abort();
      if (url !== null) URL.revokeObjectURL(url);
    };
  }, [link]);
  return loaded;
}

const NOTHING = { url: null, error: null };
