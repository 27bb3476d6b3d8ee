import { foldedWords, searchParts, spaced } from "../../rules/search.ts";
import type { SearchHit, SearchQuery } from "../search.ts";
import type { Connection } from "./connection.ts";
import type { Unit } from "./unit.ts";

/**
 * Number of conversations up to which they are part of the index query, which compares each candidate
 * with all of them.
 */
const INDEXED_SCOPE = 10;
/** Limits of what is indexed of a message: the server rejects words of 2 kB, and 1 MB in total. */
const WORD_LENGTH = 200;
const MOST_WORDS = 10_000;
const MOST_LENGTH = 300_000;

/**
 * The index entry of a message: its words without case and accents, and one more for the conversation,
 * which no text can contain. The server's own text search depends on its language settings and is not
 * used.
 */
export function searchVector(conversationId: number, content: string): string {
  const words = foldedWords(spaced(content));
  const entry = entryOf(conversationId, words);
  // Most messages are short and reach no limit. PostgreSQL itself drops repeated words.
  return entry.length <= WORD_LENGTH ? entry : entryOf(conversationId, withinLimits(words));
}

function withinLimits(all: readonly string[]): string[] {
  const words = new Set<string>();
  let length = 0;
  for (const word of all) {
    const short = shortened(word);
    if (words.has(short)) continue;
    length += short.length;
    if (words.size === MOST_WORDS || length > MOST_LENGTH) break;
    words.add(short);
  }
  return [...words];
}

const entryOf = (conversationId: number, words: readonly string[]) =>
  quoted([`#${conversationId}`, ...words].join("' '"));

/** Replaces the index entry of a message; without content, deletes it. */
export async function reindex(
  unit: Unit,
  messageId: number,
  conversationId: number,
  content: string | null,
): Promise<void> {
  if (content === null) {
    await unit.change("DELETE FROM search WHERE message_id = $1", messageId);
    return;
  }
  await unit.change(
    `INSERT INTO search (message_id, conversation_id, words) VALUES ($1, $2, $3::tsvector)
     ON CONFLICT (message_id) DO UPDATE
       SET conversation_id = excluded.conversation_id, words = excluded.words`,
    messageId,
    conversationId,
    searchVector(conversationId, content),
  );
}

/**
 * Reads the index first, restricts its hits to the viewer's conversations, and then checks them from
 * the newest on until the limit is reached. `+ 0` and `OFFSET 0` force this plan: the planner does not
 * know how rare a word is, and would sometimes scan all messages of a viewer, or of everybody.
 */
const FIND = `SELECT seen.uuid, found.id AS position
  FROM (SELECT s.message_id + 0 AS id FROM search s
    JOIN members b ON b.account_id = $1 AND ($3::bigint IS NULL OR b.conversation_id = $3)
      AND b.conversation_id = coalesce(s.conversation_id,
        (SELECT m.conversation_id FROM messages m WHERE m.id = s.message_id))
    WHERE s.message_id + 0 < $4 AND s.words @@ (
        SELECT CASE WHEN count(*) > ${INDEXED_SCOPE} THEN ''
          ELSE '(' || string_agg('''#' || conversation_id::text || '''', ' | ') || ') & ' END
          || $2::text
        FROM members WHERE account_id = $1 AND ($3::bigint IS NULL OR conversation_id = $3))::tsquery ORDER BY 1 DESC OFFSET 0) found
  CROSS JOIN LATERAL (SELECT m.uuid FROM messages m
    WHERE m.id = found.id AND m.deleted_at IS NULL
      AND NOT EXISTS (SELECT 1 FROM hidden h WHERE h.account_id = $1
        AND h.conversation_id = m.conversation_id AND h.seq = m.seq) OFFSET 0) seen
  ORDER BY found.id DESC LIMIT $5`;

export async function search(connection: Connection, query: SearchQuery): Promise<SearchHit[]> {
  const words = query.words.flatMap(foldedWords);
  if (words.length === 0) return [];
  return connection.run<SearchHit>(FIND, [
    query.viewerId,
    words.map((word, place) => condition(word, place === words.length - 1)).join(" & "),
    query.conversationId ?? null,
    query.before ?? Number.MAX_SAFE_INTEGER,
    query.limit,
  ]);
}

/** Matches the parts of a word, or the whole word, as earlier versions indexed it. */
function condition(word: string, isLast: boolean): string {
  const { parts, open } = searchParts(word);
  const lexemes = parts.map((part) => quoted(shortened(part)));
  const ending = isLast || open ? ":*" : "";
  const whole = `${quoted(shortened(word))}${isLast ? ":*" : ""}`;
  return parts[0] === word
    ? `${lexemes[0]}${ending}`
    : `(${whole} | (${lexemes.join(" & ")}${ending}))`;
}

/** Does not cut a surrogate pair in half. */
const shortened = (word: string) =>
  word.length <= WORD_LENGTH ? word : word.slice(0, WORD_LENGTH).replace(/[\ud800-\udbff]$/, "");

/** Words consist of letters and digits: there is nothing to escape. */
const quoted = (word: string) => `'${word}'`;
