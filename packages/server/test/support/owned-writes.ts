import type { Awaitable } from "../../src/store/awaitable.ts";
import type { MessageRecord } from "../../src/store/messages.ts";
import type { UnitRun } from "../../src/store/postgres/transaction.ts";
import { list } from "../../src/store/postgres/unit.ts";
import type { ReadTx, SharedStore, WriteTx } from "../../src/store/store.ts";

type WriteName = Exclude<keyof WriteTx, keyof ReadTx | "emit" | "signal">;
type Conversations = Awaitable<readonly number[]>;

/** The conversations that a call changes, and that its unit must own before it does. */
type Touched = {
  [Name in WriteName]: (unit: UnitRun, ...args: Parameters<WriteTx[Name]>) => Conversations;
};

const none = () => [];
const given = (_: UnitRun, conversationId: number) => [conversationId];
const ofMessage = (_: UnitRun, message: MessageRecord) => [message.conversation_id];
const ofMessages = (_: UnitRun, messages: readonly MessageRecord[]) =>
  messages.map(({ conversation_id }) => conversation_id);
const ofTurns = async (unit: UnitRun, ids: readonly number[]) => {
  const rows = await unit.all<{ conversation_id: number }>(
    "SELECT conversation_id FROM turns WHERE id = ANY($1::bigint[])",
    list(ids),
  );
  return rows.map(({ conversation_id }) => conversation_id);
};

const touched: Touched = {
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
  attachFiles: none,
  deleteUnusedFiles: none,
  setBlobFound: none,
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
  setSuspended: none,
  // Its mentions, hidden messages and final departures: nobody else changes or reads them.
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
  endSession: none,
  purgeSessions: none,
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
  closeConversation: given,
  markRead: given,
  changeGroup: given,
  setAlwaysOn: given,
  insertMessage: (_, { conversation }) => [conversation.id],
  importMessages: (_, conversation) => [conversation.id],
  editMessage: ofMessage,
  deleteMessages: ofMessages,
  hideMessages: ofMessages,
  addReaction: ofMessage,
  removeReaction: ofMessage,
  setMessageFiles: ofMessage,
  useComponent: ofMessage,
  queueTurn: (_, { conversation_id }) => [conversation_id],
  dropTurns: ofTurns,
  beginTurn: (unit, id) => ofTurns(unit, [id]),
  adoptTurn: (unit, id) => ofTurns(unit, [id]),
  reserveTurn: (_, { conversation_id }) => [conversation_id],
  finishTurn: (_, { conversation_id }) => [conversation_id],
  insertToolCall: (_, { conversation_id }) => [conversation_id],
  updateToolCall: (_, { conversation_id }) => [conversation_id],
  startToolCall: (_, { conversation_id }) => [conversation_id],
  insertElicitation: (_, { conversation_id }) => [conversation_id],
  answerElicitation: none,
  cancelElicitations: none,
  deleteElicitations: none,
  // These own what they find free: their results are checked.
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
  setTries: none,
  appendChunks: none,
};

/** A PostgreSQL store whose units throw when they change a conversation that they do not own. */
export function checkingOwnership(store: SharedStore): SharedStore {
  return {
    ...store,
    write: (work) => store.write((tx) => work(checkedTx(tx))),
    note: (work) => store.note((tx) => work(checkedTx(tx))),
  };
}

function checkedTx(tx: WriteTx): WriteTx {
  const { unit } = tx as unknown as { unit: UnitRun };
  return new Proxy(tx, {
    get(target, name) {
      const method = Reflect.get(target, name);
      if (!isWrite(name)) return typeof method === "function" ? method.bind(target) : method;
      return async (...args: never[]) => {
        const conversations = await (touched[name] as (...args: unknown[]) => Conversations)(
          unit,
          ...args,
        );
        const checked = checkedUnit(unit, () => checkOwned(unit, name, conversations));
        const result = await Reflect.apply(method, { unit: checked }, args);
        if (isClaim(name)) checkOwned(unit, name, conversationsIn(result as Claimed));
        return result;
      };
    },
  });
}

const isWrite = (name: string | symbol): name is WriteName => name in touched;

const claims = ["claimTurns", "claimExternalTurn", "claimOfflineTurns", "abandonedTurns"] as const;
const isClaim = (name: string): name is (typeof claims)[number] =>
  (claims as readonly string[]).includes(name);

type Claimed = Awaited<ReturnType<WriteTx[(typeof claims)[number]]>>;
const turnsIn = (claimed: Claimed) => {
  if ("turns" in claimed) return claimed.turns;
  if ("turn" in claimed) return claimed.turn ? [claimed.turn] : [];
  return claimed;
};
const conversationsIn = (claimed: Claimed) =>
  turnsIn(claimed).map(({ conversation_id }) => conversation_id);

function checkOwned(unit: UnitRun, name: string, conversations: readonly number[]): void {
  const foreign = conversations.find((id) => !unit.owned.has(`counters:${id}`));
  if (foreign === undefined) return;
  throw new Error(`${name} changes conversation ${foreign}, which its unit does not own`);
}

/** Calls `check` before each statement that changes something. */
function checkedUnit(unit: UnitRun, check: () => void): UnitRun {
  return new Proxy(unit, {
    get(target, name) {
      const member = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      return (...args: unknown[]) => {
        if (name === "change" || (name === "together" && isWriting(args[0]))) check();
        return Reflect.apply(member, target, args);
      };
    },
  });
}

const isWriting = (batch: unknown) => (batch as { writes: boolean }).writes;
