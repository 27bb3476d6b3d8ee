export type {
  Account,
  AgentLimits,
  AgentProfile,
  AgentSummary,
  AgentToken,
  ClaimedTurn,
  ComponentAction,
  ComponentUse,
  Conversation,
  ConversationDetail,
  ErrorCode,
  EventFrame,
  EventName,
  EventParams,
  EventPlace,
  File,
  FileLinks,
  GroupAgent,
  InputOf,
  KeyTest,
  Message,
  OperationName,
  OutputOf,
  Presence,
  Profile,
  Reaction,
  ReactionSummary,
  Session,
  SharedConversation,
  SignedIn,
  Turn,
  TurnReceipt,
  TurnRequest,
  UsageRow,
} from "@parley/protocol";
export { createAgent } from "./agent/agent.ts";
export { createBackend } from "./backend.ts";
export { createClient } from "./client.ts";
export { isCallError, TurnFailure } from "./errors.ts";
export { indexedDbBlobs } from "./storage/indexed-db.ts";
export type * from "./types.ts";
