import { useSyncExternalStore } from "react";
import { useChatContext } from "../chat/context.ts";
import { formatSize } from "../lib/format-size.ts";
import { count, shortenMiddle } from "../lib/names.ts";
import { isRefusedPicture, kindOf } from "./describe.ts";
import type { Size } from "./layout.ts";
import { type FileLimits, useFileLimits } from "./limits.ts";

/** A file that will be sent with the next message. */
export interface Attachment {
  readonly id: number;
  readonly file: globalThis.File;
  /** An object URL to show a picture with; null for other files. */
  readonly url: string | null;
  /** The size of a picture, once it is shown. */
  size: Size | null;
}

/** The files of a draft, and why others could not be added to them. */
interface Draft {
  readonly items: readonly Attachment[];
  readonly problem: string | null;
}

/** Longer names are shortened in the sentence about a problem. */
const NAME_LENGTH = 40;

const EMPTY: Draft = { items: [], problem: null };
/** By conversation. They stay while the person looks at other conversations, but not across a reload. */
const drafts = new Map<string, Draft>();
const listeners = new Set<() => void>();
let lastId = 0;

function setDraft(chatId: string, draft: Draft): void {
  if (draft.items.length === 0 && draft.problem === null) drafts.delete(chatId);
  else drafts.set(chatId, draft);
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export interface Attachments extends Draft {
  /** The most files that a message takes. */
  limit: number;
  add: (files: readonly globalThis.File[], problem?: string) => void;
  remove: (id: number) => void;
  /** Removes and returns all of them. */
  take: () => readonly Attachment[];
}

/** The files that will be sent with the next message of the open conversation. */
export function useAttachments(): Attachments {
  const { chat } = useChatContext();
  const limits = useFileLimits();
  const read = () => drafts.get(chat.id) ?? EMPTY;
  const draft = useSyncExternalStore(subscribe, read);
  return {
    ...draft,
    limit: limits.files_per_message,
    add: (files, problem) => setDraft(chat.id, withFiles(read(), files, limits, problem)),
    remove(id) {
      const { items } = read();
      release(items.filter((each) => each.id === id));
      setDraft(chat.id, { items: items.filter((each) => each.id !== id), problem: null });
    },
    take() {
      const { items } = read();
      setDraft(chat.id, EMPTY);
      release(items);
      return items;
    },
  };
}

/** Forgets all attachments: the person has signed out. */
export function forgetAttachments(): void {
  for (const [chatId, { items }] of [...drafts]) {
    release(items);
    setDraft(chatId, EMPTY);
  }
}

function withFiles(
  { items }: Draft,
  files: readonly globalThis.File[],
  limits: FileLimits,
  problem: string | null = null,
): Draft {
  if (limits.files_per_message === 0) return { items, problem: "Files cannot be sent here." };
  const refused = files.filter(isRefusedPicture);
  const rest = files.filter((file) => !isRefusedPicture(file));
  const small = rest.filter(({ size }) => size <= limits.file_bytes);
  const large = rest.find(({ size }) => size > limits.file_bytes);
  const added = small.slice(0, Math.max(0, limits.files_per_message - items.length));
  const problems = [
    problem,
    describeRefused(refused),
    large &&
      `${shortenMiddle(large.name, NAME_LENGTH)} is larger than ${formatSize(limits.file_bytes)}.`,
    added.length < small.length &&
      `A message takes at most ${count(limits.files_per_message, "file")}.`,
  ].filter((each) => typeof each === "string");
  return {
    items: [...items, ...added.map(attachmentOf)],
    problem: problems.length > 0 ? problems.join(" ") : null,
  };
}

function describeRefused([first, ...others]: readonly globalThis.File[]): string | null {
  if (!first) return null;
  const name = shortenMiddle(first.name, NAME_LENGTH);
  if (others.length === 0) return `${name} cannot be sent: save it as JPEG or PNG.`;
  return `${name} and ${count(others.length, "other")} cannot be sent: save them as JPEG or PNG.`;
}

const attachmentOf = (file: globalThis.File): Attachment => ({
  id: ++lastId,
  file,
  url: kindOf(file) === "picture" ? URL.createObjectURL(file) : null,
  size: null,
});

function release(items: readonly Attachment[]): void {
  for (const { url } of items) if (url !== null) URL.revokeObjectURL(url);
}
