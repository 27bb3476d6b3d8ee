import { useRef } from "react";
import { IconButton } from "../ui/Button.tsx";
import { useFileLimits } from "./limits.ts";

/** Opens the browser's dialog to choose files. */
export function AttachButton({ onFiles }: { onFiles: (files: globalThis.File[]) => void }) {
  const input = useRef<HTMLInputElement>(null);
  if (useFileLimits().files_per_message === 0) return null;
  return (
    <>
      <IconButton icon="attach" label="Attach files" onClick={() => input.current?.click()} />
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label="Files"
        onChange={({ currentTarget }) => {
          onFiles([...(currentTarget.files ?? [])]);
          // The same file can be chosen again.
          currentTarget.value = "";
        }}
      />
    </>
  );
}
