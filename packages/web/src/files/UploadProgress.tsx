import type { ShownFile } from "./shown-file.ts";

/** A bar at the lower edge of a file that is being uploaded. */
export function UploadProgress({ file: { name, uploaded } }: { file: ShownFile }) {
  if (uploaded === null) return null;
  const percent = Math.round(uploaded * 100);
  return (
    <span
      role="progressbar"
      aria-label={`Uploading ${name}`}
      aria-valuenow={percent}
      aria-valuemin={0}
      aria-valuemax={100}
      className="absolute inset-x-0 bottom-0 h-1.5 bg-lightbox/50"
    >
      <span
        style={{ width: `${percent}%` }}
        className="block h-full bg-accent-fill transition-[width]"
      />
    </span>
  );
}
