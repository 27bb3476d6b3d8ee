import type { LocalFile, LocalMessage, MessageWindow } from "../types.ts";
import type { State } from "./state.ts";
import { setEntry } from "./structural-sharing.ts";

type LocalUrls = State["localUrls"];

/**
 * Creates a function that gives a window the object URLs of the files in it that this client has
 * sent. An unchanged message is the same object, and so is a window without such files.
 */
export function createAddLocalUrls(): (window: MessageWindow, urls: LocalUrls) => MessageWindow {
  const shown = new WeakMap<LocalMessage, LocalMessage>();

  function addToMessage(message: LocalMessage, urls: LocalUrls): LocalMessage {
    const lacksUrl = (file: LocalFile) => file.url === undefined && file.id in urls;
    if (!message.files.some(lacksUrl)) return message;
    const files = message.files.map((file) => addToFile(file, urls[file.id]));
    const known = shown.get(message);
    if (known?.files.every(({ url }, index) => url === files[index]?.url)) return known;
    const next = { ...message, files };
    shown.set(message, next);
    return next;
  }

  return (window, urls) => {
    const items = window.items.map((message) =>
      message.files.length > 0 ? addToMessage(message, urls) : message,
    );
    const isSame = items.every((message, index) => message === window.items[index]);
    return isSame ? window : { ...window, items };
  };
}

const addToFile = (file: LocalFile, url: string | undefined): LocalFile =>
  url === undefined || file.url !== undefined ? file : { ...file, url };

export const withoutUrls = (urls: LocalUrls, fileIds: readonly string[]): LocalUrls =>
  fileIds.reduce((rest, id) => setEntry(rest, id, undefined), urls);
