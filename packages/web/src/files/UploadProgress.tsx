import type { ShownFile } from "./shown-file.ts";

interface UploadProgressProps {
  file: ShownFile;
  on: "picture" | "tile";
}

const looks = {
  picture: { track: "inset-x-2 bottom-2 bg-lightbox/60", bar: "bg-on-lightbox" },
  tile: { track: "inset-x-3 bottom-0.5 bg-chip", bar: "bg-accent-fill" },
};

/** A bar near the lower edge of a file that is being uploaded. */
export function UploadProgress({ file: { name, uploaded }, on }: UploadProgressProps) {
  if (uploaded === null) return null;
  const percent = Math.round(uploaded * 100);
  return (
    <span
      role="progressbar"
      aria-label={`Uploading ${name}`}
      aria-valuenow={percent}
      aria-valuemin={0}
      aria-valuemax={100}
      className={`absolute h-1 overflow-hidden rounded-full ${looks[on].track}`}
    >
      <span
        style={{ width: `${percent}%` }}
        className={`block h-full rounded-full transition-[width] ${looks[on].bar}`}
      />
    </span>
  );
}
