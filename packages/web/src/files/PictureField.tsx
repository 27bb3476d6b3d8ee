import { useClient } from "@parley/client/react";
import { type ReactNode, useCallback, useEffect, useRef, useState } from "react";
import { useAction } from "../lib/action.ts";
import { describeError } from "../lib/errors.ts";
import { squareOf } from "../lib/square.ts";
import { Button } from "../ui/Button.tsx";
import { Picture } from "../ui/Picture.tsx";
import { isRefusedPicture } from "./describe.ts";
import { useFileLimits } from "./limits.ts";

const REFUSED = "This picture cannot be used: save it as JPEG or PNG.";

interface PictureFieldProps {
  /** Whose picture it is, such as «Your picture». */
  label: string;
  hasPicture: boolean;
  /** The address of the picture, once it is known. */
  url: string | null;
  /** Uses an upload; null removes the picture. */
  onChange: (fileId: string | null) => Promise<unknown>;
  /** The avatar as it is now, with 64 pixels. */
  children: ReactNode;
}

/** Chooses or removes a picture. It is shown at once, and uploaded meanwhile. */
export function PictureField({ label, hasPicture, url, onChange, children }: PictureFieldProps) {
  const client = useClient();
  const { busy, error, run } = useAction();
  const input = useRef<HTMLInputElement>(null);
  const choose = useRef<HTMLButtonElement>(null);
  const [preview, setPreview] = useObjectUrl();
  const [done, setDone] = useState("");
  // The chosen picture is shown until the saved one is there, so that nothing flickers.
  useEffect(() => {
    if (url !== null) void loaded(url).then(() => setPreview(null));
  }, [url, setPreview]);

  const { files_per_message } = useFileLimits();

  const upload = async (file: File) => {
    setDone("");
    const isSaved = await run(async () => {
      const picture = await squareOf(file);
      // One that this browser can show is a WebP or PNG by now, whatever the file was.
      if (isRefusedPicture(picture)) throw new Error(REFUSED);
      setPreview(picture);
      await onChange((await client.uploadPicture(picture)).id);
    });
    if (isSaved) setDone("Picture saved");
    else setPreview(null);
  };
  const remove = async () => {
    setDone("");
    if (!(await run(() => onChange(null)))) return;
    setPreview(null);
    setDone("Picture removed");
    // The button has disappeared.
    choose.current?.focus();
  };

  return (
    <fieldset className="flex items-center gap-4">
      <legend className="sr-only">{label}</legend>
      <span className="relative inline-flex size-16 shrink-0">
        <Picture url={preview} shape="rounded-full">
          {children}
        </Picture>
      </span>
      <span className="flex min-w-0 flex-col gap-2">
        <span className="flex flex-wrap gap-2">
          {files_per_message > 0 && (
            <Button
              ref={choose}
              size="small"
              aria-busy={busy}
              onClick={() => input.current?.click()}
            >
              {hasPicture ? "Change picture" : "Choose picture"}
            </Button>
          )}
          {hasPicture && (
            <Button look="danger" size="small" onClick={() => void remove()}>
              Remove picture
            </Button>
          )}
        </span>
        {error !== null && (
          <span role="alert" className="text-sm text-danger">
            {describeError(error)}
          </span>
        )}
        <span role="status" className="sr-only">
          {busy ? "Saving the picture" : done}
        </span>
      </span>
      <input
        ref={input}
        type="file"
        accept="image/*"
        aria-label={label}
        tabIndex={-1}
        hidden
        onChange={({ target }) => {
          const file = target.files?.[0];
          // The same file can be chosen again.
          target.value = "";
          if (file) void upload(file);
        }}
      />
    </fieldset>
  );
}

/** An address of a blob, valid until it is replaced or the component is gone. */
function useObjectUrl(): [url: string | null, set: (blob: Blob | null) => void] {
  const [url, setUrl] = useState<string | null>(null);
  useEffect(() => () => void (url !== null && URL.revokeObjectURL(url)), [url]);
  const set = useCallback((blob: Blob | null) => setUrl(blob && URL.createObjectURL(blob)), []);
  return [url, set];
}

/** Resolves when the browser has the picture, or has given up. */
async function loaded(url: string): Promise<void> {
  const image = new Image();
  image.src = url;
  // A picture that cannot be shown replaces the preview too.
  await image.decode().catch(() => {});
}
