import { accountReads, accountWrites } from "./accounts.ts";
import { agentTokenReads, agentTokenWrites } from "./agent-tokens.ts";
import { agentReads, agentWrites } from "./agents.ts";
import { auditReads, auditWrites } from "./audit-log.ts";
import { blockReads, blockWrites } from "./blocks.ts";
import { changeReads, changeWrites } from "./changes.ts";
import { chatStateReads, chatStateWrites } from "./chat-states.ts";
import { componentWrites } from "./components.ts";
import { conversationViewReads } from "./conversation-views.ts";
import { conversationReads, conversationWrites } from "./conversations.ts";
import { directoryReads } from "./directory.ts";
import { elicitationReads, elicitationWrites } from "./elicitations.ts";
import { erasureReads, erasureWrites } from "./erasures.ts";
import { fileReads, fileWrites } from "./files.ts";
import { groupChangeReads, groupChangeWrites } from "./group-changes.ts";
import { hiddenMessageReads, hiddenMessageWrites } from "./hidden-messages.ts";
import { incomingHookReads, incomingHookWrites } from "./incoming-hooks.ts";
import { messageScanReads } from "./message-records.ts";
import { messageReads, messageWrites } from "./messages.ts";
import { operatorReads, operatorWrites } from "./operators.ts";
import { passwordResetReads, passwordResetWrites } from "./password-resets.ts";
import { pictureReads, pictureWrites } from "./pictures.ts";
import { presenceReads, presenceWrites } from "./presence.ts";
import { reactionReads, reactionWrites } from "./reactions.ts";
import { reportReads, reportWrites } from "./reports.ts";
import { sealedTextReads } from "./sealed-texts.ts";
import { secondFactorReads, secondFactorWrites } from "./second-factor.ts";
import { serviceKeyReads, serviceKeyWrites } from "./service-keys.ts";
import { sessionReads, sessionWrites } from "./sessions.ts";
import { toolCallReads, toolCallWrites } from "./tool-calls.ts";
import { toolReads, toolWrites } from "./tools.ts";
import { turnReads, turnWrites } from "./turns.ts";
import { updateReads } from "./updates.ts";
import { usageReads } from "./usage.ts";
import { webhookReads, webhookWrites } from "./webhooks.ts";

/** The methods that both dialects share. */
export const reads = {
  ...accountReads,
  ...agentReads,
  ...agentTokenReads,
  ...auditReads,
  ...blockReads,
  ...chatStateReads,
  ...conversationReads,
  ...conversationViewReads,
  ...directoryReads,
  ...elicitationReads,
  ...erasureReads,
  ...fileReads,
  ...groupChangeReads,
  ...hiddenMessageReads,
  ...changeReads,
  ...incomingHookReads,
  ...messageReads,
  ...messageScanReads,
  ...operatorReads,
  ...passwordResetReads,
  ...pictureReads,
  ...presenceReads,
  ...reactionReads,
  ...reportReads,
  ...sealedTextReads,
  ...secondFactorReads,
  ...serviceKeyReads,
  ...sessionReads,
  ...toolCallReads,
  ...toolReads,
  ...turnReads,
  ...updateReads,
  ...usageReads,
  ...webhookReads,
};

export const writes = {
  ...accountWrites,
  ...agentTokenWrites,
  ...agentWrites,
  ...auditWrites,
  ...blockWrites,
  ...chatStateWrites,
  ...componentWrites,
  ...conversationWrites,
  ...elicitationWrites,
  ...erasureWrites,
  ...fileWrites,
  ...groupChangeWrites,
  ...hiddenMessageWrites,
  ...incomingHookWrites,
  ...messageWrites,
  ...operatorWrites,
  ...passwordResetWrites,
  ...pictureWrites,
  ...presenceWrites,
  ...reactionWrites,
  ...reportWrites,
  ...secondFactorWrites,
  ...serviceKeyWrites,
  ...sessionWrites,
  ...toolCallWrites,
  ...toolWrites,
  ...changeWrites,
  ...turnWrites,
  ...webhookWrites,
};
