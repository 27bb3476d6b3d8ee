import { Database } from "bun:sqlite";
import { SQL } from "bun";

interface StoredMessage {
  uuid: string;
  conversation_id: string;
  content: string;
  client_msg_id: string;
}

interface Row extends Omit<StoredMessage, "conversation_id"> {
  conversation: number;
  seq: number;
}

/** Stores messages in one synced transaction. */
type Insert = (rows: readonly Row[]) => void | Promise<void>;

/**
 * Stores messages in SQLite, or in PostgreSQL if it is given an address, with the least that the contract
 * needs: to find a message by its id, by its number in the conversation, and by the sender's id for it,
 * how far the sender has read, and what each transaction changed. PostgreSQL also indexes the words;
 * in SQLite, which has no index for that in the same transaction, they are left out.
 * Messages that arrive during a transaction share the next one, and are answered when it is synced.
 */
export function messageFloor(database: string) {
  const insert = database.includes("://") ? onPostgres(database) : onSqlite(database);
  const conversations = new Map<string, { id: number; seq: number }>();
  let waiting: { message: StoredMessage; answer: () => void }[] = [];
  let isRunning = false;

  function toRow({ conversation_id, ...message }: StoredMessage): Row {
    // A positive number that is the same on every node.
    const id = Bun.hash.crc32(conversation_id) >>> 1;
    const place = conversations.get(conversation_id) ?? { id, seq: 0 };
    conversations.set(conversation_id, place);
    return { ...message, conversation: place.id, seq: ++place.seq };
  }

  async function run(): Promise<void> {
    isRunning = true;
    while (waiting.length > 0) {
      await new Promise<void>((resolve) => setImmediate(resolve));
      const batch = waiting;
      waiting = [];
      await insert(batch.map(({ message }) => toRow(message)));
      for (const { answer } of batch) answer();
    }
    isRunning = false;
  }

  return (message: StoredMessage, answer: () => void) => {
    waiting.push({ message, answer });
    if (!isRunning) void run();
  };
}

/** `integer` is the type of an id that the database assigns. Several nodes may share the database. */
const createTables = (integer: string, uuid: string) =>
  `CREATE TABLE IF NOT EXISTS messages (id ${integer} PRIMARY KEY, uuid ${uuid} UNIQUE, conversation INTEGER,
     seq INTEGER, content TEXT, client_msg_id TEXT,
     UNIQUE (conversation, seq), UNIQUE (conversation, client_msg_id));
   CREATE TABLE IF NOT EXISTS reads (conversation INTEGER PRIMARY KEY, seq INTEGER);
   CREATE TABLE IF NOT EXISTS changes (id ${integer} PRIMARY KEY, body TEXT)`;

const changesOf = (rows: readonly Row[]) =>
  JSON.stringify(rows.map(({ conversation, seq, uuid }) => [conversation, seq, uuid]));

const INSERT = "INSERT INTO messages (uuid, conversation, seq, content, client_msg_id)";
const READ = "ON CONFLICT (conversation) DO UPDATE SET seq = excluded.seq";

function onSqlite(path: string): Insert {
  const db = new Database(path, { create: true });
  db.run("PRAGMA journal_mode = WAL");
  db.run("PRAGMA synchronous = FULL");
  db.run(createTables("INTEGER", "TEXT"));
  const insert = db.query(`${INSERT} VALUES (?, ?, ?, ?, ?)`);
  const read = db.query(`INSERT INTO reads VALUES (?, ?) ${READ}`);
  const log = db.query("INSERT INTO changes (body) VALUES (?)");
  return (rows) => {
    db.run("BEGIN");
    for (const { uuid, conversation, seq, content, client_msg_id } of rows) {
      insert.run(uuid, conversation, seq, content, client_msg_id);
      read.run(conversation, seq);
    }
    log.run(changesOf(rows));
    db.run("COMMIT");
  };
}

function onPostgres(url: string): Insert {
  const sql = new SQL({ url, max: 1, tls: false });
  // Nodes that start together create the tables one after another.
  const tables = `SELECT pg_advisory_xact_lock(1);
    ${createTables("BIGSERIAL", "UUID")};
    CREATE TABLE IF NOT EXISTS search (id BIGINT PRIMARY KEY, words TSVECTOR);
    CREATE INDEX IF NOT EXISTS search_by_words ON search USING gin (words)`;
  const created = sql.unsafe(tables).simple();
  return async (rows) => {
    await created;
    await sql.unsafe(
      `WITH given AS MATERIALIZED (SELECT * FROM jsonb_to_recordset($1)
         AS m (uuid UUID, conversation INTEGER, seq INTEGER, content TEXT, client_msg_id TEXT)
       ), inserted AS (
         ${INSERT} SELECT uuid, conversation, seq, content, client_msg_id FROM given
         RETURNING id, content
       ), indexed AS (
         INSERT INTO search SELECT id, array_to_tsvector(string_to_array(content, ' ')) FROM inserted
       ), seen AS (
         INSERT INTO reads SELECT conversation, max(seq) FROM given GROUP BY conversation ${READ}
       )
       INSERT INTO changes (body) VALUES ($2)`,
      [rows, changesOf(rows)],
    );
  };
}
