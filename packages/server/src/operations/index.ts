import type { Bound } from "../calls/bind.ts";
import type { Needs } from "../calls/needs.ts";
import { accounts } from "./accounts.ts";
import { agentTokens } from "./agent-tokens.ts";
import { agents } from "./agents.ts";
import { chatStates } from "./chat-states.ts";
import { components } from "./components.ts";
import { conversations } from "./conversations.ts";
import { files } from "./files.ts";
import { groups } from "./groups.ts";
import { incomingHooks } from "./incoming-hooks.ts";
import { messages } from "./messages.ts";
import { operators } from "./operators.ts";
import { ownData } from "./own-data.ts";
import { passwordResets } from "./password-resets.ts";
import { presence } from "./presence.ts";
import { reactions } from "./reactions.ts";
import { reports } from "./reports.ts";
import { secondFactor } from "./second-factor.ts";
import { service } from "./service.ts";
import { sessions } from "./sessions.ts";
import { signIn } from "./sign-in.ts";
import { toolCalls } from "./tool-calls.ts";
import { tools } from "./tools.ts";
import { turns } from "./turns.ts";
import { typing } from "./typing.ts";
import { webhooks } from "./webhooks.ts";

/** The handlers of all operations, for what they need. */
export const handlers = (needs: Needs): Bound[] =>
  [
    sessions,
    passwordResets,
    signIn,
    secondFactor,
    accounts,
    ownData,
    conversations,
    chatStates,
    messages,
    files,
    reactions,
    typing,
    presence,
    agents,
    tools,
    agentTokens,
    turns,
    groups,
    components,
    toolCalls,
    service,
    operators,
    reports,
    webhooks,
    incomingHooks,
  ].flatMap((resource) => resource.bind(needs));
