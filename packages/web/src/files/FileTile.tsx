import { lazy, Suspense, useState } from "react";
import { formatSize } from "../lib/format-size.ts";
import { Icon } from "../ui/Icon.tsx";
import { extensionOf, splitName } from "./describe.ts";
import { useFileLink } from "./links.ts";
import type { ShownFile } from "./shown-file.ts";
import { UploadProgress } from "./UploadProgress.tsx";

const LOOK =
  "relative flex w-80 max-w-full items-center gap-3 overflow-hidden rounded-lg border border-line bg-surface p-2 pr-3 text-left";

const PdfPreview = lazy(() => import("./PdfPreview.tsx"));

/** Whether the browser shows the file in a viewer of its own. */
export const isShownByBrowser = ({ type }: ShownFile) =>
  type === "application/pdf" && navigator.pdfViewerEnabled;

/**
 * A file with its name, type and size. Once it is sent, unless its bytes are lost, a click opens it where
 * the browser can show it, and otherwise downloads it.
 */
export function FileTile({ file }: { file: ShownFile }) {
  const { id, name, isSent } = file;
  const link = useFileLink(isSent ? id : null);
  if (!isSent || file.status === "failed") {
    return (
      <div className={LOOK}>
        <FileLabel file={file} />
        <UploadProgress file={file} on="tile" />
        {file.error !== undefined && (
          <span className="text-danger">
            <Icon name="alert" size={17} />
          </span>
        )}
      </div>
    );
  }
  if (isShownByBrowser(file)) return <PdfTile file={file} />;
  return (
    <a
      data-pressable
      href={link?.url}
      download={name}
      className={`${LOOK} transition-colors hover:bg-hover`}
    >
      <span className="sr-only">Download </span>
      <FileLabel file={file} />
      <span className="text-ink-2">
        <Icon name="download" size={17} />
      </span>
    </a>
  );
}

function PdfTile({ file }: { file: ShownFile }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button
        type="button"
        data-pressable
        aria-haspopup="dialog"
        onClick={() => setOpen(true)}
        className={`${LOOK} transition-colors hover:bg-hover`}
      >
        <span className="sr-only">Open </span>
        <FileLabel file={file} />
        <span className="text-ink-2">
          <Icon name="show" size={17} />
        </span>
      </button>
      {isOpen && (
        <Suspense>
          <PdfPreview file={file} onClose={() => setOpen(false)} />
        </Suspense>
      )}
    </>
  );
}

function FileLabel({ file: { name, size, status } }: { file: ShownFile }) {
  return (
    <>
      <FileMark name={name} />
      <span className="min-w-0 flex-1">
        <FileName name={name} className="text-base" />{" "}
        <span className="block text-xs text-ink-3">
          {status === "failed" ? "No longer available" : formatSize(size)}
        </span>
      </span>
    </>
  );
}

/** The name of a file in one line. A long one is cut before its end, which says what the file is. */
export function FileName({ name, className }: { name: string; className: string }) {
  const { start, end } = splitName(name);
  return (
    <span dir="auto" title={name} className={`flex text-left font-medium ${className}`}>
      <span className="truncate whitespace-pre">{start}</span>
      {end !== "" && <span className="shrink-0 whitespace-pre">{end}</span>}
    </span>
  );
}

/** The end of a file's name in a square, or an icon if it has none. */
export function FileMark({ name }: { name: string }) {
  const extension = extensionOf(name);
  return (
    <span
      aria-hidden="true"
      className="inline-flex size-10 shrink-0 items-center justify-center rounded-md bg-accent-soft text-2xs font-semibold tracking-tight text-accent"
    >
      {extension === "" ? <Icon name="file" size={18} /> : extension}
    </span>
  );
}
