import type { SearchHit, SearchQuery } from "../../src/store/search.ts";
import { type Store, Unavailable } from "../../src/store/store.ts";

/** Searches until there is a result, as clients do: on a busy machine a search may exceed its deadline. */
export async function searchPatiently(store: Store, query: SearchQuery): Promise<SearchHit[]> {
  for (;;) {
    try {
      return await store.search(query);
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
    }
  }
}
