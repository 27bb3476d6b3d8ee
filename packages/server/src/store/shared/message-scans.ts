import { MESSAGE_RECORD, MESSAGE_TABLES } from "./messages.ts";

const IN_RANGE = "m.id > $1 AND m.id <= $2 AND m.deleted_at IS NULL";

/** The messages of a range. A filter and an order follow. */
export const SCAN = `SELECT ${MESSAGE_RECORD} FROM ${MESSAGE_TABLES} WHERE ${IN_RANGE}`;

export const OLDEST_AT = `SELECT min(m.created_at) AS at FROM messages m WHERE ${IN_RANGE}`;
