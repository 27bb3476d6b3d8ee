import type { z } from "zod";
import {
  blockUser,
  getBlocked,
  getMe,
  getProfiles,
  getUser,
  getUsers,
  setAvatar,
  unblockUser,
  updateMe,
} from "./accounts.ts";
import { createAgentToken, getAgentTokens, revokeAgentToken } from "./agent-tokens.ts";
import {
  createAgent,
  deleteAgent,
  getAgentModels,
  getAgentUsage,
  getMyAgents,
  removeAgentKey,
  setAgentKey,
  setAgentLimits,
  setAgentProfile,
  setAgentTools,
  testAgentKey,
  updateAgent,
} from "./agents.ts";
import { clearChat, getUnread, markUnread, setChatState } from "./chat-states.ts";
import { sendComponentAction } from "./components.ts";
import {
  addChatMembers,
  getChat,
  getChats,
  leaveChat,
  readChat,
  removeChatMember,
  setChatPicture,
  setChatTitle,
  startChat,
} from "./conversations.ts";
import { cancelUpload, createUpload, getChatFiles, getFileLinks } from "./files.ts";
import {
  addGroupAgent,
  getGroupAgents,
  removeGroupAgent,
  setGroupAgentMode,
  stopChatAgents,
} from "./groups.ts";
import { createIncomingHook, deleteIncomingHook, getIncomingHooks } from "./incoming-hooks.ts";
import {
  deleteMessages,
  deleteMessagesForMe,
  editMessage,
  getChatHistory,
  getMessage,
  getUpdates,
  searchMessages,
  sendMessage,
} from "./messages.ts";
import {
  eraseAccount,
  getAccounts,
  getAuditLog,
  getStatistics,
  restoreAccount,
  suspendAccount,
} from "./operators.ts";
import { deleteMe, exportMe } from "./own-data.ts";
import { createPasswordReset, getPasswordReset, resetPassword } from "./password-resets.ts";
import { setActivity, watchPresence } from "./presence.ts";
import {
  addReaction,
  getMessageReactions,
  removeReaction,
  setMessageReaction,
} from "./reactions.ts";
import { getReports, reportMessage, resolveReport } from "./reports.ts";
import {
  beginSecondFactor,
  confirmSecondFactor,
  getSecondFactor,
  removeSecondFactor,
  renewRecoveryCodes,
} from "./second-factor.ts";
import { importMessages, issueToken, revokeTokens, upsertChats, upsertUsers } from "./service.ts";
import {
  changePassword,
  confirmPassword,
  getSessions,
  revokeSession,
  signIn,
  signOut,
  signUp,
} from "./sessions.ts";
import { finishOidcSignIn, getSignInMethods, startOidcSignIn } from "./sign-in.ts";
import { decideToolCall, getPendingToolCalls, getToolCalls } from "./tool-calls.ts";
import {
  addToolServer,
  authorizeToolServer,
  finishToolServer,
  getToolServers,
  refreshToolServer,
  removeToolServer,
  updateToolServer,
} from "./tools.ts";
import {
  claimTurn,
  finishTurn,
  getTurn,
  retryAgentTurn,
  setTurnStatus,
  stopAgentTurn,
  writeTurn,
} from "./turns.ts";
import { sendChatAction } from "./typing.ts";
import {
  createWebhook,
  deleteWebhook,
  getDeliveries,
  getWebhooks,
  replayDelivery,
  setWebhook,
} from "./webhooks.ts";

/** Every operation, in the order of the reference. */
export const operations = {
  signUp,
  signIn,
  getSignInMethods,
  startOidcSignIn,
  finishOidcSignIn,
  changePassword,
  confirmPassword,
  getPasswordReset,
  resetPassword,
  signOut,
  getSessions,
  revokeSession,
  getSecondFactor,
  beginSecondFactor,
  confirmSecondFactor,
  renewRecoveryCodes,
  removeSecondFactor,
  getMe,
  getUser,
  getUsers,
  getProfiles,
  updateMe,
  setAvatar,
  exportMe,
  deleteMe,
  blockUser,
  unblockUser,
  getBlocked,
  startChat,
  getChats,
  getChat,
  setChatTitle,
  setChatPicture,
  addChatMembers,
  removeChatMember,
  leaveChat,
  readChat,
  setChatState,
  clearChat,
  markUnread,
  getUnread,
  sendMessage,
  getChatHistory,
  getMessage,
  editMessage,
  deleteMessages,
  deleteMessagesForMe,
  getUpdates,
  searchMessages,
  reportMessage,
  setMessageReaction,
  addReaction,
  removeReaction,
  getMessageReactions,
  sendChatAction,
  watchPresence,
  setActivity,
  getMyAgents,
  createAgent,
  updateAgent,
  deleteAgent,
  setAgentKey,
  removeAgentKey,
  testAgentKey,
  getAgentModels,
  setAgentProfile,
  setAgentLimits,
  setAgentTools,
  getAgentUsage,
  stopAgentTurn,
  retryAgentTurn,
  getTurn,
  addToolServer,
  getToolServers,
  updateToolServer,
  refreshToolServer,
  authorizeToolServer,
  finishToolServer,
  removeToolServer,
  createAgentToken,
  getAgentTokens,
  revokeAgentToken,
  claimTurn,
  writeTurn,
  setTurnStatus,
  finishTurn,
  getGroupAgents,
  addGroupAgent,
  removeGroupAgent,
  setGroupAgentMode,
  stopChatAgents,
  sendComponentAction,
  getToolCalls,
  getPendingToolCalls,
  decideToolCall,
  createUpload,
  cancelUpload,
  getFileLinks,
  getChatFiles,
  upsertUsers,
  upsertChats,
  issueToken,
  revokeTokens,
  importMessages,
  getAccounts,
  suspendAccount,
  restoreAccount,
  createPasswordReset,
  getReports,
  resolveReport,
  eraseAccount,
  getAuditLog,
  getStatistics,
  createWebhook,
  getWebhooks,
  setWebhook,
  deleteWebhook,
  getDeliveries,
  replayDelivery,
  createIncomingHook,
  getIncomingHooks,
  deleteIncomingHook,
} as const;

export type Operations = typeof operations;
export type OperationName = keyof Operations;
/** What a caller passes in. */
export type InputOf<Name extends OperationName> = z.input<Operations[Name]["input"]>;
/** What a caller gets as `result`. */
export type OutputOf<Name extends OperationName> = Operations[Name]["output"] extends z.ZodType
  ? z.output<Operations[Name]["output"]>
  : undefined;
