import { type RefObject, useEffect, useRef } from "react";
import { pastedFiles } from "./transfer.ts";

/** Takes files that are pasted while the field, or no other field, has the focus. */
export function usePastedFiles(
  field: RefObject<HTMLElement | null>,
  onFiles: (files: globalThis.File[]) => void,
): void {
  const latest = useRef(onFiles);
  latest.current = onFiles;
  useEffect(() => {
    const handlePaste = (event: ClipboardEvent) => {
      const focused = document.activeElement;
      const other = focused?.closest("input, textarea, select, dialog, [popover]");
      if (other && other !== field.current) return;
      const files = pastedFiles(event.clipboardData);
      if (files.length === 0) return;
      event.preventDefault();
      field.current?.focus();
      latest.current(files);
    };
    document.addEventListener("paste", handlePaste);
    return () => document.removeEventListener("paste", handlePaste);
  }, [field]);
}
