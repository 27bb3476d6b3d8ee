import { Database } from "bun:sqlite";

interface StoredMessage {
  uuid: string;
  conversation_id: string;
  content: string;
  client_msg_id: string;
}

/**
 * Stores messages with the least that the contract needs: to find a message by its id, by its number in
 * the conversation, and by the sender's id for it. Those that arrive in one turn of the event loop share
 * a transaction, and are answered when it is synced.
 */
export function messageFloor(path: string) {
  const db = new Database(path, { create: true });
  db.run("PRAGMA journal_mode = WAL");
  db.run("PRAGMA synchronous = FULL");
  db.run(
    `CREATE TABLE messages (id INTEGER PRIMARY KEY, uuid TEXT UNIQUE, conversation INTEGER, seq INTEGER,
       content TEXT, client_msg_id TEXT, UNIQUE (conversation, seq), UNIQUE (conversation, client_msg_id))`,
  );
  const insert = db.query(
    "INSERT INTO messages (uuid, conversation, seq, content, client_msg_id) VALUES (?, ?, ?, ?, ?)",
  );
  const conversations = new Map<string, { id: number; seq: number }>();
  let waiting: { message: StoredMessage; answer: () => void }[] = [];
  const flush = () => {
    const batch = waiting;
    waiting = [];
    db.run("BEGIN");
    for (const { message } of batch) {
      const { uuid, conversation_id, content, client_msg_id } = message;
      const place = conversations.get(conversation_id) ?? { id: conversations.size, seq: 0 };
      conversations.set(conversation_id, place);
      insert.run(uuid, place.id, ++place.seq, content, client_msg_id);
    }
    db.run("COMMIT");
    for (const { answer } of batch) answer();
  };
  return (message: StoredMessage, answer: () => void) => {
    if (waiting.length === 0) setImmediate(flush);
    waiting.push({ message, answer });
  };
}
