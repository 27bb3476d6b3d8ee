import type { ReadTx, WriteTx } from "./store.ts";

/**
 * Which conversations the units of work own and change. A unit owns a conversation by reading it, or
 * something of it, with one of the methods in `owning`. No other unit changes the conversation then, so
 * that the unit may decide by what it reads and store the outcome.
 */

type WriteName = Exclude<keyof WriteTx, keyof ReadTx | "emit" | "signal">;
type InConversation = { readonly conversation_id: number };

/** The conversation of a record that the unit has read, by its uuid; that of a turn by its id. */
type ConversationOf = (key: string | number) => number;

/** The conversations that a call changes. */
type Changed = {
  [Name in WriteName]: (of: ConversationOf, ...args: Parameters<WriteTx[Name]>) => number[];
};

const none = () => [];
const given = (_: ConversationOf, conversationId: number) => [conversationId];
const ofRecord = (_: ConversationOf, { conversation_id }: InConversation) => [conversation_id];

const changed: Changed = {
  renewHistory: none,
  claimSubscription: none,
  saveSubscription: none,
  advanceSubscription: none,
  deleteSubscription: none,
  insertAccount: none,
  setDisplayName: none,
  countOwnChange: none,
  setPassword: none,
  lockCredentials: none,
  lockUnerased: none,
  insertAuditEntry: none,
  pruneAuditLog: none,
  insertFile: none,
  finishFile: none,
  failFile: none,
  attachFiles: (of, _, messageUuid) => [of(messageUuid)],
  deleteUnusedFiles: none,
  setBlobFound: (of, { message_uuid }) => (message_uuid === null ? [] : [of(message_uuid)]),
  forgetBlobs: none,
  setAvatar: none,
  setChatPicture: given,
  insertReport: none,
  resolveReport: none,
  pruneReports: none,
  insertServiceKey: none,
  touchServiceKey: none,
  revokeServiceKey: none,
  insertIncomingHook: none,
  deleteIncomingHook: none,
  insertWebhook: none,
  setWebhook: none,
  disableWebhook: none,
  resealWebhook: none,
  deleteWebhook: none,
  queueDeliveries: none,
  requeueDelivery: none,
  resumeLanes: none,
  claimLanes: none,
  finishAttempts: none,
  parkLane: none,
  pruneDeliveries: none,
  pruneDeletedWebhooks: none,
  insertAccounts: none,
  block: none,
  unblock: none,
  setAddedBy: none,
  leaveForGood: given,
  setMetadata: none,
  setPolicy: none,
  setSuspended: none,
  // Nobody reads its mentions, hidden messages and final departures any more, and others only add to them.
  eraseAccount: none,
  eraseToolCalls: given,
  finishErasure: none,
  addOperator: none,
  removeOperator: none,
  insertIdentity: none,
  beginSecondFactor: none,
  confirmSecondFactor: none,
  useTimeStep: none,
  setRecoveryCodes: none,
  useRecoveryCode: none,
  removeSecondFactor: none,
  resealSecondFactor: none,
  insertSession: none,
  touchSession: none,
  confirmSession: none,
  endSession: none,
  purgeSessions: none,
  setPasswordReset: none,
  removePasswordReset: none,
  insertToolServer: none,
  setToolServerState: none,
  replaceToolSecrets: none,
  renameToolServer: none,
  deleteToolServer: none,
  setToolGrants: none,
  setAgentKey: none,
  resealKey: none,
  removeAgentKey: none,
  setAgentProfile: none,
  setAgentProvider: none,
  setAgentLimits: none,
  // No other unit can see the conversation yet.
  insertConversation: none,
  releasePair: given,
  insertMembers: given,
  deleteMembers: given,
  setAdmin: given,
  setTitle: given,
  setChatMetadata: given,
  closeConversation: given,
  markRead: given,
  changeGroup: given,
  setAlwaysOn: given,
  insertMessage: (_, { conversation }) => [conversation.id],
  importMessages: (_, conversation) => [conversation.id],
  editMessage: ofRecord,
  deleteMessages: (_, messages) => conversationsIn(messages),
  hideMessages: (_, messages) => conversationsIn(messages),
  addReaction: ofRecord,
  removeReaction: ofRecord,
  setMessageFiles: ofRecord,
  useComponent: ofRecord,
  queueTurn: ofRecord,
  dropTurns: (of, ids) => ids.map(of),
  beginTurn: (of, id) => [of(id)],
  adoptTurn: (of, id) => [of(id)],
  reserveTurn: ofRecord,
  finishTurn: ofRecord,
  insertToolCall: ofRecord,
  updateToolCall: ofRecord,
  startToolCall: ofRecord,
  insertElicitation: ofRecord,
  answerElicitation: (of, uuid) => [of(uuid)],
  cancelElicitations: (of, messageUuids) => messageUuids.map(of),
  deleteElicitations: (of, callUuid) => [of(callUuid)],
  // They own what they find free.
  claimTurns: none,
  claimExternalTurn: none,
  claimOfflineTurns: none,
  insertAgentToken: none,
  touchAgentToken: none,
  deleteAgentTokens: none,
  noteAgentsSeen: none,
  abandonedTurns: none,
  // What the node that owns a turn stores of it alone: they lock the rows of the turns.
  renewNode: none,
  renewLeases: none,
  setRounds: none,
  setAttempt: none,
  appendChunks: none,
};

/** The conversations that the unit owns after a call. */
type Owning = {
  [Name in keyof WriteTx]?: (
    result: Awaited<ReturnType<WriteTx[Name]>>,
    ...args: Parameters<WriteTx[Name]>
  ) => number[];
};

const conversationsIn = (records: readonly (InConversation | null)[]) =>
  records.filter((record) => record !== null).map(({ conversation_id }) => conversation_id);
const conversationIn = (record: InConversation | null) => conversationsIn([record]);

const owning: Owning = {
  conversation: (found) => (found ? [found.id] : []),
  message: conversationIn,
  reactionCounts: (_, message) => conversationIn(message),
  turn: conversationIn,
  openTurns: (_, conversationId) => [conversationId],
  toolCall: conversationIn,
  insertConversation: (id) => [id],
  claimTurns: ({ turns }) => conversationsIn(turns),
  claimExternalTurn: ({ turn }) => conversationIn(turn),
  claimOfflineTurns: conversationsIn,
  abandonedTurns: conversationsIn,
};

/** What a unit of work has read and owns, as far as its calls show. */
export class UnitRecords {
  readonly owned = new Set<number>();
  readonly #conversations = new Map<unknown, number>();

  /** The conversations that a call is about to change. Throws if it names a record that was not read. */
  changedBy(name: string, args: readonly unknown[]): readonly number[] {
    const rule = changed[name as WriteName] as
      | ((of: ConversationOf, ...args: readonly unknown[]) => number[])
      | undefined;
    return rule?.((key) => this.#conversationOf(name, key), ...args) ?? [];
  }

  /** Takes notice of a call, and returns the conversations that the unit owns since then. */
  called(name: string, args: readonly unknown[], result: unknown): readonly number[] {
    const rule = owning[name as keyof WriteTx] as
      | ((...args: readonly unknown[]) => number[])
      | undefined;
    const conversations = rule?.(result, ...args) ?? [];
    for (const id of conversations) this.owned.add(id);
    for (const record of recordsIn(result)) {
      this.#conversations.set(record.uuid ?? record.id, record.conversation_id);
    }
    if (name === "insertMessage" && result) {
      const [{ conversation }] = args as Parameters<WriteTx["insertMessage"]>;
      this.#conversations.set((result as { id: string }).id, conversation.id);
    }
    return conversations;
  }

  #conversationOf(name: string, key: string | number): number {
    const found = this.#conversations.get(key);
    if (found === undefined) throw new Error(`${name} changes ${key}, which its unit has not read`);
    return found;
  }
}

interface FoundRecord extends InConversation {
  readonly uuid?: string;
  readonly id?: number;
}

/** The records in a result: itself, a list, or the turns that were claimed. */
function recordsIn(result: unknown): FoundRecord[] {
  const { turns, turn } = (result ?? {}) as { turns?: unknown; turn?: unknown };
  const found = [turns ?? turn ?? result].flat() as Partial<FoundRecord | null>[];
  return found.filter((each): each is FoundRecord => typeof each?.conversation_id === "number");
}
