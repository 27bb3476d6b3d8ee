import type { LocalFile, LocalMessage, MessageWindow } from "../types.ts";
import type { State } from "./state.ts";

type LocalUrls = State["localUrls"];

/**
 * Creates a function that adds the object URLs of files that this client has sent to a window. An
 * unchanged message is the same object, and so is a window without such files.
 */
export function createAddLocalUrls(): (window: MessageWindow, urls: LocalUrls) => MessageWindow {
  const shown = new WeakMap<LocalMessage, LocalMessage>();

  function addToMessage(message: LocalMessage, urls: LocalUrls): LocalMessage {
    const hasUrl = (file: LocalFile) => file.url === undefined && file.id in urls;
    if (!message.files.some(hasUrl)) return message;
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
