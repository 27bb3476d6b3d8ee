import { auditReads, auditWrites } from "./audit-log.ts";
import { identityReads, identityWrites } from "./identities.ts";
import { invitationReads, invitationWrites } from "./invitations.ts";
import { operatorReads, operatorWrites } from "./operators.ts";
import { reactionReads, reactionWrites } from "./reactions.ts";
import { reportReads, reportWrites } from "./reports.ts";
import { sealedTextReads } from "./sealed-texts.ts";
import { secondFactorReads, secondFactorWrites } from "./second-factor.ts";
import { serviceKeyReads, serviceKeyWrites } from "./service-keys.ts";
import { statisticsReads } from "./statistics.ts";

/** The methods that both dialects share. */
export const reads = {
  ...auditReads,
  ...identityReads,
  ...invitationReads,
  ...operatorReads,
  ...reactionReads,
  ...reportReads,
  ...sealedTextReads,
  ...secondFactorReads,
  ...serviceKeyReads,
  ...statisticsReads,
};

export const writes = {
  ...auditWrites,
  ...identityWrites,
  ...invitationWrites,
  ...operatorWrites,
  ...reactionWrites,
  ...reportWrites,
  ...secondFactorWrites,
  ...serviceKeyWrites,
};
