import { type RefObject, useState } from "react";
import { formatSize } from "../lib/format-size.ts";
import { count } from "../lib/names.ts";
import { IconButton } from "../ui/Button.tsx";
import { Icon } from "../ui/Icon.tsx";
import type { Attachment, Attachments } from "./attachments.ts";
import { FileMark, FileName } from "./FileTile.tsx";

/** How many files before the limit their number is shown. */
const NEAR_LIMIT = 2;

interface AttachmentStripProps {
  attachments: Attachments;
  /** Gets the focus after the last file was removed. */
  field: RefObject<HTMLElement | null>;
}

/** The files that will be sent with the next message, above the text. */
export function AttachmentStrip({ attachments, field }: AttachmentStripProps) {
  const { items, limit, problem, remove } = attachments;
  const isNearLimit = items.length > 0 && items.length >= limit - NEAR_LIMIT;
  const attached = isNearLimit
    ? `${items.length} of ${count(limit, "file")}`
    : count(items.length, "file");
  return (
    <>
      <p role="status" className="sr-only">
        {items.length > 0 && `${attached} attached`}
      </p>
      <div className="flex items-start gap-3 px-3 text-sm has-[p:not(:empty)]:pt-2">
        <p role="alert" className="min-w-0 flex-1 break-words text-ink-2">
          {problem !== null && (
            <>
              <span className="mr-1.5 inline-flex align-[-2px] text-warn">
                <Icon name="alert" size={15} />
              </span>
              {problem}
            </>
          )}
        </p>
        {isNearLimit && (
          <p aria-hidden="true" className="shrink-0 text-xs leading-5 text-ink-3 tabular-nums">
            {attached}
          </p>
        )}
      </div>
      {items.length > 0 && (
        <ul aria-label="Attached files" className="flex gap-2 overflow-x-auto px-2 pt-2 pb-1">
          {items.map((item) => (
            <AttachmentItem
              key={item.id}
              item={item}
              onRemove={(button) => {
                focusNeighbour(button, field.current);
                remove(item.id);
              }}
            />
          ))}
        </ul>
      )}
    </>
  );
}

interface AttachmentItemProps {
  item: Attachment;
  onRemove: (button: HTMLElement) => void;
}

function AttachmentItem({ item, onRemove }: AttachmentItemProps) {
  const { name, size } = item.file;
  const [isUnreadable, setIsUnreadable] = useState(false);
  return (
    <li className="flex w-56 shrink-0 animate-in items-center gap-2 rounded-md border border-line bg-canvas p-1.5">
      {item.url === null || isUnreadable ? (
        <FileMark name={name} />
      ) : (
        <img
          src={item.url}
          alt=""
          onError={() => setIsUnreadable(true)}
          onLoad={({ currentTarget: { naturalWidth, naturalHeight } }) => {
            item.size = { width: naturalWidth, height: naturalHeight };
          }}
          className="size-10 shrink-0 rounded-sm bg-sunken object-cover outline -outline-offset-1 outline-ink/15"
        />
      )}
      <span className="min-w-0 flex-1">
        <FileName name={name} className="text-sm" />
        <span className="block text-xs text-ink-3">{formatSize(size)}</span>
      </span>
      <IconButton
        icon="close"
        label={`Remove ${name}`}
        small
        className="pointer-coarse:size-10"
        onClick={({ currentTarget }) => onRemove(currentTarget)}
      />
    </li>
  );
}

/** Moves the focus from a button that disappears: to that of the next file, or into the field. */
function focusNeighbour(button: HTMLElement, field: HTMLElement | null): void {
  const item = button.closest("li");
  const next = item?.nextElementSibling ?? item?.previousElementSibling;
  (next?.querySelector("button") ?? field)?.focus();
}
