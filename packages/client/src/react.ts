import type { FileLinks, Presence, Profile } from "@parley/protocol";
import {
  createContext,
  createElement,
  type ReactNode,
  useCallback,
  useContext,
  useEffect,
  useMemo,
  useSyncExternalStore,
} from "react";
import type { Client, LinkCache, PieceName, PieceOf } from "./types.ts";

const ClientContext = createContext<Client | null>(null);

/** Provides a client to the components inside. */
export function ParleyProvider({ client, children }: { client: Client; children?: ReactNode }) {
  return createElement(ClientContext.Provider, { value: client }, children);
}

export function useClient(): Client {
  const client = useContext(ClientContext);
  if (!client) throw new Error("useClient needs a ParleyProvider around it.");
  return client;
}

/** Reads a piece of the live model. The component renders again when that piece has changed. */
export function usePiece<Name extends PieceName>(name: Name): PieceOf<Name> {
  const { model } = useClient();
  const subscribe = useCallback(
    (onChange: () => void) => model.watch(name, onChange),
    [model, name],
  );
  const read = () => model.get(name);
  return useSyncExternalStore(subscribe, read, read);
}

export const useStatus = () => usePiece("status");
export const useMe = () => usePiece("me");
export const useChatIds = () => usePiece("chats");
export const useChat = (id: string) => usePiece(`chat:${id}`);
export const useAside = (id: string) => usePiece(`aside:${id}`);
export const useTyping = (id: string) => usePiece(`typing:${id}`);
export const useAgents = () => usePiece("agents");
export const useBlocked = () => usePiece("blocked");
export const useUnread = () => usePiece("unread");

/** The latest messages of a conversation. Opens the conversation, so that they are loaded and stay up to date. */
export function useMessages(id: string): PieceOf<`messages:${string}`> {
  const { model } = useClient();
  useEffect(() => {
    // Whoever may not see the conversation has no messages of it.
    model.openChat(id).catch(() => {});
  }, [model, id]);
  return usePiece(`messages:${id}`);
}

/** The draft of a conversation, and a function that changes it. */
export function useDraft(id: string): [text: string, setText: (text: string) => void] {
  const { model } = useClient();
  const text = usePiece(`draft:${id}`);
  const setText = useCallback((next: string) => model.setDraft(id, next), [model, id]);
  return [text, setText];
}

/** The profile of an account with its picture, once it is fetched. Null: asks for nothing. */
export function useProfile(username: string | null): Profile | undefined {
  const { profiles } = useClient();
  const subscribe = useCallback(
    (onChange: () => void) => (username === null ? () => {} : profiles.watch(username, onChange)),
    [profiles, username],
  );
  const read = () => (username === null ? undefined : profiles.peek(username));
  return useSyncExternalStore(subscribe, read, read);
}

/** Whether a person is online, or when they last were; undefined until it is known. Null: asks for nothing. */
export function usePresence(username: string | null): Presence | undefined {
  const { presence } = useClient();
  const subscribe = useCallback(
    (onChange: () => void) => (username === null ? () => {} : presence.watch(username, onChange)),
    [presence, username],
  );
  const read = () => (username === null ? undefined : presence.peek(username));
  return useSyncExternalStore(subscribe, read, read);
}

/** Links to files by file id, as far as they are fetched. They are renewed before they expire. */
export function useFileLinks(ids: readonly string[]): Readonly<Record<string, FileLinks>> {
  const { links } = useClient();
  const key = ids.join(" ");
  const source = useMemo(() => createLinkSource(links, key), [links, key]);
  return useSyncExternalStore(source.subscribe, source.read, source.read);
}

function createLinkSource(links: LinkCache, key: string) {
  const ids = key === "" ? [] : key.split(" ");
  let last: Record<string, FileLinks> = {};
  return {
    subscribe: (onChange: () => void) => links.watch(ids, onChange),
    /** Returns the same object as long as no link has changed. */
    read() {
      const known = ids.map((id) => links.peek(id) ?? last[id]);
      const isSame = ids.every((id, index) => known[index] === last[id]);
      if (!isSame) {
        last = Object.fromEntries(known.flatMap((link) => (link ? [[link.file_id, link]] : [])));
      }
      return last;
    },
  };
}
