import { useRef } from "react";
import { IconButton } from "../ui/Button.tsx";

/** Opens the browser's dialog to choose files. */
export function AttachButton({ onFiles }: { onFiles: (files: globalThis.File[]) => void }) {
  const input = useRef<HTMLInputElement>(null);
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
