import { foldedWords, searchParts, spaced } from "../../rules/search.ts";
import type { SearchHit, SearchQuery } from "../search.ts";
import type { Connection } from "./connection.ts";
import type { Unit } from "./unit.ts";

/** Up to so many conversations the index itself is scoped; it looks at all of them for each candidate. */
const INDEXED_SCOPE = 10;
/** What of a message is indexed: the server refuses words of 2 kB, and 1 MB of them in all. */
const WORD_LENGTH = 200;
const MOST_WORDS = 10_000;
const MOST_LENGTH = 300_000;

/**
 * A message as the index has it: its words without case and accents, each once, and the
 * conversation as one more, which no text can contain. The server's own ways of finding words depend
 * on its language settings and are left aside.
 */
export function searchVector(conversationId: number, content: string): string {
  const words = new Set<string>();
  let length = 0;
  for (const word of foldedWords(spaced(content))) {
    const short = shortened(word);
    if (words.has(short)) continue;
    length += short.length;
    if (words.size === MOST_WORDS || length > MOST_LENGTH) break;
    words.add(short);
  }
  return [`#${conversationId}`, ...words].map(quoted).join(" ");
}

/** Puts a message's words into the index as they are now; none when there is nothing to find. */
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
 * The index is asked first and by itself, and what it found is scoped to the viewer's conversations.
 * Then that is gone through from the newest until there is enough. `+ 0` and `OFFSET 0` keep the
 * server to that: it cannot know how rare a word is, and would now and then read all messages of a
 * viewer, or of everybody, instead.
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

/** A word as it is, as messages of earlier versions have it, or what it consists of. */
function condition(word: string, isLast: boolean): string {
  const { parts, open } = searchParts(word);
  const lexemes = parts.map((part) => quoted(shortened(part)));
  const ending = isLast || open ? ":*" : "";
  const whole = `${quoted(shortened(word))}${isLast ? ":*" : ""}`;
  return parts[0] === word
    ? `${lexemes[0]}${ending}`
    : `(${whole} | (${lexemes.join(" & ")}${ending}))`;
}

/** Never ends between the halves of a surrogate pair. */
const shortened = (word: string) =>
  word.length <= WORD_LENGTH ? word : word.slice(0, WORD_LENGTH).replace(/[\ud800-\udbff]$/, "");

/** Words are letters and digits alone: there is nothing in them to escape. */
const quoted = (word: string) => `'${word}'`;
