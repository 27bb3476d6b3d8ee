import type { File } from "@parley/protocol";
import { searchedText } from "../../rules/files.ts";
import { containsInOrder, foldedWords, searchParts, spaced } from "../../rules/search.ts";
import { shareOfLoop } from "../event-loop.ts";
import type { SearchHit, SearchQuery } from "../search.ts";
import { SEARCH_DEADLINE_MS } from "../search-queue.ts";
import type { IndexedMessage, Sql } from "../sql.ts";
import { Unavailable } from "../store.ts";
import type { Connection } from "./connection.ts";

/**
 * Number of conversations up to which they are part of the index query, which compares each candidate
 * with all of them.
 */
const INDEXED_SCOPE = 10;
/** Limits of what is indexed of a message: PostgreSQL rejects words of 2 kB, and 1 MB in total. */
const MAX_WORD_CHARACTERS = 200;
const MAX_WORDS = 10_000;
const MAX_CHARACTERS = 300_000;

/**
 * The index entry of a message: its words without case and accents, and one more for the conversation,
 * which no text can contain. PostgreSQL's own text search depends on its language settings and is not
 * used.
 */
export function searchVector(conversationId: number, content: string): string {
  const words = foldedWords(spaced(content));
  const entry = entryOf(conversationId, words);
  // An entry that is not longer than a word may be reaches no limit. PostgreSQL itself drops repeated words.
  return entry.length <= MAX_WORD_CHARACTERS ? entry : entryOf(conversationId, withinLimits(words));
}

function withinLimits(all: readonly string[]): string[] {
  const words = new Set<string>();
  let length = 0;
  for (const word of all) {
    const short = shortened(word);
    if (words.has(short)) continue;
    length += short.length;
    if (words.size === MAX_WORDS || length > MAX_CHARACTERS) break;
    words.add(short);
  }
  return [...words];
}

const entryOf = (conversationId: number, words: readonly string[]) =>
  [`#${conversationId}`, ...words].map(quoted).join(" ");

/** Replaces the index entry of a message; without text, deletes it. */
export async function reindex(
  db: Sql,
  { id, conversation_id }: IndexedMessage,
  text: string | null,
): Promise<void> {
  if (text === null) {
    await db.remove("search", { message_id: id });
    return;
  }
  await db.change`
    INSERT INTO search (message_id, conversation_id, words)
    VALUES (${id}, ${conversation_id}, ${searchVector(conversation_id, text)}::tsvector)
    ON CONFLICT (message_id) DO UPDATE
      SET conversation_id = excluded.conversation_id, words = excluded.words`;
}

/**
 * Reads the index first, restricts its hits to the viewer's conversations, and then checks them from
 * the newest on until the limit is reached. `+ 0` and `OFFSET 0` force this plan: the planner does not
 * know how rare a word is, and would sometimes scan all messages of a viewer, or of everybody.
 */
const FIND = `SELECT seen.uuid, found.id AS position, seen.content, seen.files
  FROM (SELECT s.message_id + 0 AS id, b.cleared_seq FROM search s
    JOIN members b ON b.account_id = $1 AND ($3::bigint IS NULL OR b.conversation_id = $3)
      AND b.conversation_id = coalesce(s.conversation_id,
        (SELECT m.conversation_id FROM messages m WHERE m.id = s.message_id))
    WHERE s.message_id + 0 < $4 AND s.words @@ (
        SELECT CASE WHEN count(*) > ${INDEXED_SCOPE} THEN ''
          ELSE '(' || string_agg('''#' || conversation_id::text || '''', ' | ') || ') & ' END
          || $2::text
        FROM members WHERE account_id = $1 AND ($3::bigint IS NULL OR conversation_id = $3))::tsquery ORDER BY 1 DESC OFFSET 0) found
  CROSS JOIN LATERAL (SELECT m.uuid, CASE WHEN $6 THEN m.content END AS content,
      CASE WHEN $6 THEN m.files END AS files FROM messages m
    WHERE m.id = found.id AND m.deleted_at IS NULL AND m.seq > found.cleared_seq
      AND NOT EXISTS (SELECT 1 FROM hidden h WHERE h.account_id = $1
        AND h.conversation_id = m.conversation_id AND h.seq = m.seq) OFFSET 0) seen
  ORDER BY found.id DESC LIMIT $5`;

interface Candidate extends SearchHit {
  /** Null unless it has to be checked. */
  readonly content: string | null;
  readonly files: readonly File[] | null;
}

export async function search(connection: Connection, query: SearchQuery): Promise<SearchHit[]> {
  const words = query.words.flatMap(foldedWords);
  if (words.length === 0) return [];
  const wanted = words.map((word, place) => wantedOf(word, place === words.length - 1));
  const isChecked = wanted.some(({ parts }) => parts.length > 1);
  const candidates = (before: number) =>
    connection.run<Candidate>(FIND, [
      query.viewerId,
      wanted.map(conditionOf).join(" & "),
      query.conversationId ?? null,
      before,
      query.limit,
      isChecked,
    ]);
  const endsAt = performance.now() + SEARCH_DEADLINE_MS;
  const hits: SearchHit[] = [];
  for (let before = query.before ?? Number.MAX_SAFE_INTEGER; ; ) {
    const page = await candidates(before);
    for (const candidate of page) {
      // Other work of the process goes on in between: checking long messages takes long.
      if (candidate.content !== null) await shareOfLoop();
      // What is found by then is not all, and the search queue answers the caller.
      if (performance.now() > endsAt) throw new Unavailable("the search took too long");
      const { uuid, position } = candidate;
      if (isMatch(candidate, wanted)) hits.push({ uuid, position });
      if (hits.length === query.limit) return hits;
    }
    const last = page.at(-1);
    if (!last || page.length < query.limit) return hits;
    before = last.position;
  }
}

/** A word of the query, and the words of the index that it consists of. */
interface Wanted {
  readonly word: string;
  readonly parts: readonly string[];
  /** Whether the word matches as the beginning of a word. */
  readonly isLast: boolean;
  /** Whether the last part matches as the beginning of a word. */
  readonly isOpen: boolean;
}

function wantedOf(word: string, isLast: boolean): Wanted {
  const { parts, open } = searchParts(word);
  return { word, parts: parts.map(shortened), isLast, isOpen: isLast || open };
}

/**
 * Matches the parts of a word in any order, which the index does not know, or the whole word, as earlier
 * versions indexed it.
 */
function conditionOf({ word, parts, isLast, isOpen }: Wanted): string {
  const inAnyOrder = `${parts.map(quoted).join(" & ")}${isOpen ? ":*" : ""}`;
  const whole = `${quoted(shortened(word))}${isLast ? ":*" : ""}`;
  return parts.length === 1 && parts[0] === shortened(word)
    ? inAnyOrder
    : `(${whole} | (${inAnyOrder}))`;
}

function isMatch({ content, files }: Candidate, wanted: readonly Wanted[]): boolean {
  if (content === null) return true;
  const words = foldedWords(spaced(searchedText(content, files ?? []))).map(shortened);
  return wanted.every(({ parts, isOpen }) => containsInOrder(words, parts, isOpen));
}

/** Does not cut a surrogate pair in half. */
const shortened = (word: string) =>
  word.length <= MAX_WORD_CHARACTERS
    ? word
    : word.slice(0, MAX_WORD_CHARACTERS).replace(/[\ud800-\udbff]$/, "");

/** Words consist of letters and digits: there is nothing to escape. */
const quoted = (word: string) => `'${word}'`;
