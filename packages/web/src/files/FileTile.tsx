import { Icon } from "../ui/Icon.tsx";
import { extensionOf, formatSize } from "./describe.ts";
import { useFileLink } from "./links.ts";
import type { ShownFile } from "./shown-file.ts";

/** A file with its name, type and size; a click downloads it. */
export function FileTile({ file }: { file: ShownFile }) {
  const link = useFileLink(file.isSent ? file.id : null);
  const { name, size } = file;
  return (
    <a
      data-pressable
      href={link?.url}
      download={name}
      className="flex w-80 max-w-full items-center gap-3 rounded-lg border border-line bg-surface p-2 pr-3 transition-colors hover:bg-hover"
    >
      <FileMark name={name} />
      <span className="min-w-0 flex-1">
        <span className="sr-only">Download </span>
        <span dir="auto" title={name} className="block truncate text-left text-base font-medium">
          {name}
        </span>
        <span className="block text-xs text-ink-3">{formatSize(size)}</span>
      </span>
      <span className="text-ink-2">
        <Icon name="download" size={17} />
      </span>
    </a>
  );
}

/** The end of a file's name in a square, or an icon if it has none. */
function FileMark({ name }: { name: string }) {
  const extension = extensionOf(name);
  return (
    <span
      aria-hidden="true"
      className="inline-flex size-10 shrink-0 items-center justify-center rounded-md bg-accent-soft text-2xs font-semibold text-accent"
    >
      {extension === "" ? <Icon name="file" size={18} /> : extension}
    </span>
  );
}
