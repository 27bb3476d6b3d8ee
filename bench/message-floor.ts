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
 * needs: to find a message by its id, by its number in the conversation, and by the sender's id for it.
 * Those that arrive during a transaction share the next one, and are answered when it is synced.
 */
export function messageFloor(database: string) {
  const insert = database.includes("://") ? onPostgres(database) : onSqlite(database);
  const conversations = new Map<string, { id: number; seq: number }>();
  let waiting: { message: StoredMessage; answer: () => void }[] = [];
  let isRunning = false;

  function toRow({ conversation_id, ...message }: StoredMessage): Row {
    const place = conversations.get(conversation_id) ?? { id: conversations.size, seq: 0 };
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

const createTable = (integer: string, uuid: string) =>
  `CREATE TABLE messages (id ${integer} PRIMARY KEY, uuid ${uuid} UNIQUE, conversation INTEGER,
     seq INTEGER, content TEXT, client_msg_id TEXT,
     UNIQUE (conversation, seq), UNIQUE (conversation, client_msg_id))`;

const INSERT = "INSERT INTO messages (uuid, conversation, seq, content, client_msg_id)";

function onSqlite(path: string): Insert {
  const db = new Database(path, { create: true });
  db.run("PRAGMA journal_mode = WAL");
  db.run("PRAGMA synchronous = FULL");
  db.run(createTable("INTEGER", "TEXT"));
  const insert = db.query(`${INSERT} VALUES (?, ?, ?, ?, ?)`);
  return (rows) => {
    db.run("BEGIN");
    for (const { uuid, conversation, seq, content, client_msg_id } of rows) {
      insert.run(uuid, conversation, seq, content, client_msg_id);
    }
    db.run("COMMIT");
  };
}

function onPostgres(url: string): Insert {
  const sql = new SQL({ url, max: 1, tls: false });
  const created = sql.unsafe(createTable("BIGSERIAL", "UUID")).then(() => {});
  return async (rows) => {
    await created;
    await sql.unsafe(
      `${INSERT} SELECT uuid, conversation, seq, content, client_msg_id FROM jsonb_to_recordset($1)
         AS m (uuid UUID, conversation INTEGER, seq INTEGER, content TEXT, client_msg_id TEXT)`,
      [rows],
    );
  };
}
