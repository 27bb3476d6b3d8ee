import { agentPresenceReads, agentPresenceWrites } from "./agent-presence.ts";
import { agentTokenReads, agentTokenWrites } from "./agent-tokens.ts";
import { agentReads, agentWrites } from "./agents.ts";
import { auditReads, auditWrites } from "./audit-log.ts";
import { componentWrites } from "./components.ts";
import { conversationViewReads } from "./conversation-views.ts";
import { conversationReads, conversationWrites } from "./conversations.ts";
import { elicitationReads, elicitationWrites } from "./elicitations.ts";
import { fileReads, fileWrites } from "./files.ts";
import { groupChangeReads, groupChangeWrites } from "./group-changes.ts";
import { hiddenMessageReads, hiddenMessageWrites } from "./hidden-messages.ts";
import { historyReads, historyWrites } from "./history.ts";
import { identityReads, identityWrites } from "./identities.ts";
import { invitationReads, invitationWrites } from "./invitations.ts";
import { messageScanReads } from "./message-scans.ts";
import { messageReads, messageWrites } from "./messages.ts";
import { operatorReads, operatorWrites } from "./operators.ts";
import { pictureReads, pictureWrites } from "./pictures.ts";
import { reactionReads, reactionWrites } from "./reactions.ts";
import { reportReads, reportWrites } from "./reports.ts";
import { sealedTextReads } from "./sealed-texts.ts";
import { secondFactorReads, secondFactorWrites } from "./second-factor.ts";
import { serviceKeyReads, serviceKeyWrites } from "./service-keys.ts";
import { statisticsReads } from "./statistics.ts";
import { toolCallReads, toolCallWrites } from "./tool-calls.ts";
import { toolReads, toolWrites } from "./tools.ts";
import { turnReads, turnWrites } from "./turns.ts";
import { updateReads } from "./updates.ts";
import { usageReads } from "./usage.ts";

/** The methods that both dialects share. */
export const reads = {
  ...agentPresenceReads,
  ...agentReads,
  ...agentTokenReads,
  ...auditReads,
  ...conversationReads,
  ...conversationViewReads,
  ...elicitationReads,
  ...fileReads,
  ...groupChangeReads,
  ...hiddenMessageReads,
  ...historyReads,
  ...identityReads,
  ...invitationReads,
  ...messageReads,
  ...messageScanReads,
  ...operatorReads,
  ...pictureReads,
  ...reactionReads,
  ...reportReads,
  ...sealedTextReads,
  ...secondFactorReads,
  ...serviceKeyReads,
  ...statisticsReads,
  ...toolCallReads,
  ...toolReads,
  ...turnReads,
  ...updateReads,
  ...usageReads,
};

export const writes = {
  ...agentPresenceWrites,
  ...agentTokenWrites,
  ...agentWrites,
  ...auditWrites,
  ...componentWrites,
  ...conversationWrites,
  ...elicitationWrites,
  ...fileWrites,
  ...groupChangeWrites,
  ...hiddenMessageWrites,
  ...historyWrites,
  ...identityWrites,
  ...invitationWrites,
  ...messageWrites,
  ...operatorWrites,
  ...pictureWrites,
  ...reactionWrites,
  ...reportWrites,
  ...secondFactorWrites,
  ...serviceKeyWrites,
  ...toolCallWrites,
  ...toolWrites,
  ...turnWrites,
};
