import type { Store } from "../model/store.ts";
import type { Operations } from "../types.ts";

const CHATS_PER_PAGE = 50;
/** The largest page, for reading a long list again with fewer calls. */
const MAX_CHATS_PER_PAGE = 100;

/** Loads the list of conversations page by page. */
export class ChatList {
  readonly #store: Store;
  readonly #api: Pick<Operations, "getChats">;
  readonly #onOtherHistory: () => void;
  /** Null if the whole list is loaded. */
  #nextCursor: string | null = null;

  constructor(store: Store, api: Pick<Operations, "getChats">, onOtherHistory: () => void) {
    this.#store = store;
    this.#api = api;
    this.#onOtherHistory = onOtherHistory;
  }

  /**
   * Reads the list again as far as it was loaded, because the caller may have read on another
   * device. Returns the known conversations that are not in that part of the list.
   */
  async refresh(): Promise<Iterable<string>> {
    const missing = new Set(Object.keys(this.#store.state.chats));
    const limit = missing.size > CHATS_PER_PAGE ? MAX_CHATS_PER_PAGE : CHATS_PER_PAGE;
    let pages = Math.ceil(missing.size / limit) + 1;
    let cursor: string | null = null;
    do {
      const page = await this.#readPage(cursor, limit);
      for (const { id } of page.items) missing.delete(id);
      cursor = page.next_cursor;
    } while (cursor !== null && missing.size > 0 && --pages > 0);
    this.#nextCursor = cursor;
    return missing;
  }

  get hasMore(): boolean {
    return this.#nextCursor !== null;
  }

  /** Loads the next page. Returns whether there are more. */
  async loadMore(): Promise<boolean> {
    const cursor = this.#nextCursor;
    if (cursor === null) return false;
    const page = await this.#readPage(cursor, CHATS_PER_PAGE);
    if (this.#nextCursor === cursor) this.#nextCursor = page.next_cursor;
    return this.hasMore;
  }

  reset(): void {
    this.#nextCursor = null;
  }

  async #readPage(cursor: string | null, limit: number) {
    const known = this.#store.state.chats;
    const page = await this.#api.getChats({ limit, ...(cursor !== null && { cursor }) });
    if (page.items.some((item) => item.seq < (known[item.id]?.chat.seq ?? 0))) {
      this.#onOtherHistory();
    }
    this.#store.dispatch({ type: "snapshots", snapshots: page.items, listed: true });
    return page;
  }
}
