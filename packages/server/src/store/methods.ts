import { accountReads, accountWrites } from "./accounts.ts";
import { agentPresenceReads, agentPresenceWrites } from "./agent-presence.ts";
import { agentTokenReads, agentTokenWrites } from "./agent-tokens.ts";
import { agentReads, agentWrites } from "./agents.ts";
import { auditReads, auditWrites } from "./audit-log.ts";
import { blockReads, blockWrites } from "./blocks.ts";
import { componentWrites } from "./components.ts";
import { conversationViewReads } from "./conversation-views.ts";
import { conversationReads, conversationWrites } from "./conversations.ts";
import { directoryReads } from "./directory.ts";
import { elicitationReads, elicitationWrites } from "./elicitations.ts";
import { erasureReads, erasureWrites } from "./erasures.ts";
import { fileReads, fileWrites } from "./files.ts";
import { groupChangeReads, groupChangeWrites } from "./group-changes.ts";
import { hiddenMessageReads, hiddenMessageWrites } from "./hidden-messages.ts";
import { historyReads, historyWrites } from "./history.ts";
import { identityReads, identityWrites } from "./identities.ts";
import { incomingHookReads, incomingHookWrites } from "./incoming-hooks.ts";
import { invitationReads, invitationWrites } from "./invitations.ts";
import { managedAccountReads, managedAccountWrites } from "./managed-accounts.ts";
import { messageScanReads } from "./message-scans.ts";
import { messageReads, messageWrites } from "./messages.ts";
import { operatorReads, operatorWrites } from "./operators.ts";
import { passwordResetReads, passwordResetWrites } from "./password-resets.ts";
import { pictureReads, pictureWrites } from "./pictures.ts";
import { reactionReads, reactionWrites } from "./reactions.ts";
import { reportReads, reportWrites } from "./reports.ts";
import { sealedTextReads } from "./sealed-texts.ts";
import { secondFactorReads, secondFactorWrites } from "./second-factor.ts";
import { serviceKeyReads, serviceKeyWrites } from "./service-keys.ts";
import { sessionReads, sessionWrites } from "./sessions.ts";
import { statisticsReads } from "./statistics.ts";
import { subscriptionWrites } from "./subscriptions.ts";
import { toolCallReads, toolCallWrites } from "./tool-calls.ts";
import { toolReads, toolWrites } from "./tools.ts";
import { turnReads, turnWrites } from "./turns.ts";
import { updateReads } from "./updates.ts";
import { usageReads } from "./usage.ts";
import { webhookReads, webhookWrites } from "./webhooks.ts";

/** The methods that both dialects share. */
export const reads = {
  ...accountReads,
  ...agentPresenceReads,
  ...agentReads,
  ...agentTokenReads,
  ...auditReads,
  ...blockReads,
  ...conversationReads,
  ...conversationViewReads,
  ...directoryReads,
  ...elicitationReads,
  ...erasureReads,
  ...fileReads,
  ...groupChangeReads,
  ...hiddenMessageReads,
  ...historyReads,
  ...identityReads,
  ...incomingHookReads,
  ...invitationReads,
  ...managedAccountReads,
  ...messageReads,
  ...messageScanReads,
  ...operatorReads,
  ...passwordResetReads,
  ...pictureReads,
  ...reactionReads,
  ...reportReads,
  ...sealedTextReads,
  ...secondFactorReads,
  ...serviceKeyReads,
  ...sessionReads,
  ...statisticsReads,
  ...toolCallReads,
  ...toolReads,
  ...turnReads,
  ...updateReads,
  ...usageReads,
  ...webhookReads,
};

export const writes = {
  ...accountWrites,
  ...agentPresenceWrites,
  ...agentTokenWrites,
  ...agentWrites,
  ...auditWrites,
  ...blockWrites,
  ...componentWrites,
  ...conversationWrites,
  ...elicitationWrites,
  ...erasureWrites,
  ...fileWrites,
  ...groupChangeWrites,
  ...hiddenMessageWrites,
  ...historyWrites,
  ...identityWrites,
  ...incomingHookWrites,
  ...invitationWrites,
  ...managedAccountWrites,
  ...messageWrites,
  ...operatorWrites,
  ...passwordResetWrites,
  ...pictureWrites,
  ...reactionWrites,
  ...reportWrites,
  ...secondFactorWrites,
  ...serviceKeyWrites,
  ...sessionWrites,
  ...toolCallWrites,
  ...toolWrites,
  ...subscriptionWrites,
  ...turnWrites,
  ...webhookWrites,
};
