import type { LocalMessage } from "@parley/client";
import { useAside, useMessages } from "@parley/client/react";
import { useMemo, useRef } from "react";
import { type OpenPicture, useChatContext } from "../chat/context.ts";
import { useIsBlocked } from "../lib/blocked.ts";
import { kindOf } from "./describe.ts";
import { type ShownFile, shownFiles } from "./shown-file.ts";

export interface ConversationPicture extends OpenPicture {
  file: ShownFile;
}

/**
 * The pictures of all loaded messages around the given one, oldest first; none after it was deleted.
 * If the opened message was never loaded, only its own.
 * In groups, those of people whom the person blocked are left out, except for the opened message.
 */
export function useConversationPictures(
  current: LocalMessage,
  opened: LocalMessage,
): readonly ConversationPicture[] {
  const { chat } = useChatContext();
  const live = useMessages(chat.id).items;
  const aside = useAside(chat.id)?.items;
  const isBlocked = useIsBlocked();
  const isOpenedLoaded = [live, aside ?? []].some((all) =>
    all.some((each) => isSame(each, opened)),
  );
  const wasLoaded = useRef(false);
  wasLoaded.current ||= isOpenedLoaded;
  return useMemo(() => {
    const items = [live, aside ?? []].find((all) => all.some((each) => isSame(each, current)));
    if (!items && !wasLoaded.current) return picturesOf(opened);
    const isShown = (message: LocalMessage) =>
      chat.kind !== "group" || !isBlocked(message.sender) || isSame(message, opened);
    return (items ?? []).filter(isShown).flatMap(picturesOf);
  }, [live, aside, chat.kind, isBlocked, current, opened]);
}

const picturesOf = (message: LocalMessage): ConversationPicture[] =>
  shownFiles(message)
    .filter((file) => kindOf(file) === "picture")
    .map((file, index) => ({ message, index, file }));

export const isSamePicture = (one: OpenPicture, other: OpenPicture) =>
  one.index === other.index && isSame(one.message, other.message);

/** A message of one's own gets its id only when it is sent. */
const isSame = (one: LocalMessage, other: LocalMessage) =>
  one.id === other.id ||
  (one.client_msg_id !== null &&
    one.client_msg_id === other.client_msg_id &&
    one.sender.username === other.sender.username);
