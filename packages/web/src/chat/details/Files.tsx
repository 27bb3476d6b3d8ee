import type { Client } from "@parley/client";
import { useClient, useMessages } from "@parley/client/react";
import type { OutputOf } from "@parley/protocol";
import { lazy, Suspense, useCallback, useState } from "react";
import { kindOf } from "../../files/describe.ts";
import { FileMark, FileName, isShownByBrowser } from "../../files/FileTile.tsx";
import { useFileLink } from "../../files/links.ts";
import { Picture } from "../../files/Picture.tsx";
import type { ShownFile } from "../../files/shown-file.ts";
import { useAction } from "../../lib/action.ts";
import { useIsBlocked } from "../../lib/blocked.ts";
import { describeError, showError } from "../../lib/errors.ts";
import { useFetched } from "../../lib/fetched.ts";
import { formatSize } from "../../lib/format-size.ts";
import { nameOf } from "../../lib/names.ts";
import { fullTime, shortTime } from "../../lib/time.ts";
import { Button, IconButton } from "../../ui/Button.tsx";
import { Notice } from "../../ui/Notice.tsx";
import { Unfetched } from "../../ui/Unfetched.tsx";
import { useChatContext } from "../context.ts";
import { loadedMessage } from "../loaded-message.ts";

const PdfPreview = lazy(() => import("../../files/PdfPreview.tsx"));

type Page = OutputOf<"getChatFiles">;
type Entry = Page["items"][number];

/** Few, because the list stands between other sections. */
const PAGE_SIZE = 6;
/** A page may be empty and still lead on. After so many, a person decides whether to go on. */
const MAX_EMPTY_PAGES = 5;

interface FilesProps {
  /** Called before the conversation scrolls to a message. */
  onJump: () => void;
}

/** The files of the conversation, newest first. */
export function Files({ onJump }: FilesProps) {
  const { chat } = useChatContext();
  const client = useClient();
  const isBlocked = useIsBlocked();
  const next = useAction();
  const loadedFiles = useLoadedFiles(chat.id);
  const fetched = useFetched(
    // biome-ignore lint/correctness/useExhaustiveDependencies: files come and go with messages
    useCallback(() => readPage(client, chat.id), [client, chat.id, loadedFiles]),
  );
  const { value, change } = fetched;
  const cursor = value?.next_cursor ?? null;
  const more = () =>
    next.run(async () => {
      const page = await readPage(client, chat.id, cursor);
      change((before) =>
        before?.next_cursor === cursor
          ? { ...page, items: [...before.items, ...page.items] }
          : (before ?? page),
      );
    });
  const isShown = ({ sender }: Entry) => chat.kind !== "group" || !isBlocked(sender);
  const shown = value?.items.filter(isShown) ?? [];
  return (
    <section aria-labelledby="files-heading" className="flex flex-col gap-2">
      <h3 id="files-heading" className="text-base font-semibold">
        Files
      </h3>
      {!value && <Unfetched fetched={fetched} className="h-20" />}
      {value && shown.length === 0 && (
        <p className="text-sm text-ink-3">
          {cursor === null ? "No files yet." : "No files in the latest messages."}
        </p>
      )}
      {shown.length > 0 && (
        <ul aria-label="Files" className="-mx-2 flex flex-col">
          {shown.map((entry) => (
            <FileLine key={entry.file.id} entry={entry} onJump={onJump} />
          ))}
        </ul>
      )}
      {next.error !== null && <Notice>{describeError(next.error)}</Notice>}
      {cursor !== null && (
        <Button size="small" className="self-start" busy={next.busy} onClick={more}>
          More files
        </Button>
      )}
    </section>
  );
}

/** The next page that has files. */
async function readPage(client: Client, chatId: string, from: string | null = null): Promise<Page> {
  let page: Page = { items: [], next_cursor: from };
  for (let read = 0; read < MAX_EMPTY_PAGES; read++) {
    const { next_cursor: cursor } = page;
    page = await client.getChatFiles({
      chat_id: chatId,
      limit: PAGE_SIZE,
      ...(cursor !== null && { cursor }),
    });
    if (page.items.length > 0 || page.next_cursor === null) break;
  }
  return page;
}

/** Changes with the files of the latest messages. */
function useLoadedFiles(chatId: string): string {
  const { items } = useMessages(chatId);
  return items
    .filter(({ delivery }) => delivery === "sent")
    .flatMap(({ files }) => files.map(({ id, status }) => `${id} ${status}`))
    .join();
}

function FileLine({ entry, onJump }: { entry: Entry } & FilesProps) {
  const { onJump: jumpTo } = useChatContext();
  const { file, message_id } = entry;
  const jump = () => {
    onJump();
    jumpTo(message_id);
  };
  return (
    <li className="flex items-center gap-1">
      <OpenFile entry={entry} />
      <IconButton
        icon="next"
        label={`Show ${file.name} in conversation`}
        small
        className="pointer-coarse:size-11"
        onClick={jump}
      />
    </li>
  );
}

const LOOK = "flex min-w-0 flex-1 items-center gap-3 rounded-md px-2 py-1.5 text-left";

/** Opens a picture or a PDF over the window, and downloads other files. */
function OpenFile({ entry }: { entry: Entry }) {
  const { file } = entry;
  const shown = shownFile(entry);
  const [isPdfOpen, setPdfOpen] = useState(false);
  const isPicture = kindOf(file) === "picture";
  const openPicture = useOpenPicture(entry);
  const link = useFileLink(file.id);
  if (file.status === "failed") {
    return (
      <div className={LOOK}>
        <FileMark name={file.name} />
        <Label entry={entry} />
      </div>
    );
  }
  if (isPicture) {
    return (
      <button
        type="button"
        aria-haspopup="dialog"
        onClick={openPicture}
        className={`${LOOK} hover:bg-hover`}
      >
        <span aria-hidden="true" className="relative size-10 shrink-0 overflow-hidden rounded-md">
          <Picture file={shown} version="preview" className="object-cover" />
        </span>
        <Label entry={entry} />
      </button>
    );
  }
  if (isShownByBrowser(shown)) {
    return (
      <>
        <button
          type="button"
          aria-haspopup="dialog"
          onClick={() => setPdfOpen(true)}
          className={`${LOOK} hover:bg-hover`}
        >
          <span className="sr-only">Open </span>
          <FileMark name={file.name} />
          <Label entry={entry} />
        </button>
        {isPdfOpen && (
          <Suspense>
            <PdfPreview file={shown} onClose={() => setPdfOpen(false)} />
          </Suspense>
        )}
      </>
    );
  }
  return (
    <a href={link?.url} download={file.name} className={`${LOOK} hover:bg-hover`}>
      <span className="sr-only">Download </span>
      <FileMark name={file.name} />
      <Label entry={entry} />
    </a>
  );
}

function Label({ entry: { file, sender, sent_at } }: { entry: Entry }) {
  return (
    <span className="min-w-0 flex-1">
      <FileName name={file.name} className="text-base" />{" "}
      <span className="block truncate text-xs text-ink-3">
        {file.status === "failed" ? "No longer available" : formatSize(file.size)} ·{" "}
        {nameOf(sender)},{" "}
        <time dateTime={sent_at} title={fullTime(sent_at)}>
          {shortTime(sent_at)}
        </time>
      </span>
    </span>
  );
}

const shownFile = ({ file }: Entry): ShownFile => ({ ...file, isSent: true, uploaded: null });

/** Opens the picture with its message, which may not be loaded. */
function useOpenPicture({ file, message_id }: Entry): () => Promise<void> {
  const { chat, onPicture } = useChatContext();
  const client = useClient();
  return async () => {
    try {
      const message = loadedMessage(client.model, chat.id, message_id) ?? {
        ...(await client.getMessage({ message_id })),
        delivery: "sent" as const,
      };
      const pictures = message.files.filter((each) => kindOf(each) === "picture");
      onPicture({ message, index: pictures.findIndex(({ id }) => id === file.id) });
    } catch (error) {
      showError(error);
    }
  };
}
