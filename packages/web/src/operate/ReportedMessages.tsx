import type { Message, Report } from "@parley/protocol";
import { useState } from "react";
import { formatSize } from "../lib/format-size.ts";
import { nameOf } from "../lib/names.ts";
import { clockTime, fullTime } from "../lib/time.ts";
import { Avatar } from "../ui/Avatar.tsx";
import { Button } from "../ui/Button.tsx";
import { Icon } from "../ui/Icon.tsx";

/** The reported message among those around it. */
export function ReportedMessages({ report: { message, around } }: { report: Report }) {
  const messages = [...around.filter(({ id }) => id !== message.id), message].sort(
    (one, other) => one.seq - other.seq,
  );
  return (
    <ol className="flex flex-col py-2">
      {messages.map((each) => (
        <MessageLine key={each.id} message={each} isReported={each === message} />
      ))}
    </ol>
  );
}

function MessageLine({ message, isReported }: { message: Message; isReported: boolean }) {
  const { sender, content, created_at, edited_at, files } = message;
  return (
    <li
      className={`flex gap-3 px-4 py-2 ${isReported ? "bg-warn-soft shadow-[inset_3px_0_var(--color-warn)] forced-colors:outline-2" : ""}`}
    >
      <Avatar account={sender} size={24} />
      <div className="min-w-0 flex-1">
        <p className="flex flex-wrap items-baseline gap-x-1.5 text-sm">
          <span className="font-medium break-words">{nameOf(sender)}</span>
          <span className="break-all text-ink-2">@{sender.username}</span>
          <time dateTime={created_at} title={fullTime(created_at)} className="text-xs text-ink-2">
            {clockTime(created_at)}
            {edited_at !== null && ", edited"}
          </time>
          {isReported && <span className="text-xs font-semibold text-warn">Reported</span>}
        </p>
        {content !== "" && <Source text={content} />}
        {files.length > 0 && <FileNames files={files} />}
      </div>
    </li>
  );
}

/** The names of the files: operators do not see what is in them. */
const FileNames = ({ files }: Pick<Message, "files">) => (
  <ul aria-label="Files" className="flex flex-col text-sm text-ink-2">
    {files.map(({ id, name, size }) => (
      <li key={id} className="flex min-w-0 items-center gap-1.5">
        <Icon name="file" size={14} />
        <span dir="auto" className="min-w-0 break-words">
          {name}
        </span>
        <span className="shrink-0 text-xs text-ink-3">{formatSize(size)}</span>
      </li>
    ))}
  </ul>
);

/** Longer messages are cut off at first. */
const MAX_CHARACTERS = 1500;

/** A message as it was written: formatting could hide where a link leads. */
function Source({ text }: { text: string }) {
  const [isOpen, setOpen] = useState(text.length <= MAX_CHARACTERS);
  return (
    <>
      <p dir="auto" className="text-base break-words whitespace-pre-wrap">
        {isOpen ? text : `${text.slice(0, MAX_CHARACTERS)}…`}
      </p>
      {!isOpen && (
        <Button size="small" className="mt-1" onClick={() => setOpen(true)}>
          Show all of it
        </Button>
      )}
    </>
  );
}
