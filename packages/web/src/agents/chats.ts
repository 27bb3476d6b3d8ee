import type { Client, LocalChat } from "@parley/client";
import { useChatIds, useClient } from "@parley/client/react";
import { useSelf } from "../lib/me.ts";
import { isMyAgent, others } from "../lib/names.ts";
import { chatPath, navigate } from "../lib/router.ts";

/** Opens another conversation with one's own agent; an empty one that has no title is used again. */
export async function startNewChat(client: Client, username: string): Promise<void> {
  const empty = chatsWith(client, username).find(
    ({ title, last_message }) => title === null && last_message === null,
  );
  const { id } =
    empty ?? (await client.startChat({ usernames: [username], kind: "direct", new: true }));
  navigate(chatPath(id));
}

/** The loaded conversations with an agent, latest activity first. */
export function useAgentChats(username: string): LocalChat[] {
  useChatIds();
  return chatsWith(useClient(), username);
}

const chatsWith = ({ model }: Client, username: string): LocalChat[] =>
  model
    .get("chats")
    .map((id) => model.get(`chat:${id}`))
    .filter((chat) => chat !== null)
    .filter(
      ({ kind, participants }) =>
        kind === "direct" && participants.some((each) => each.username === username),
    );

/** The conversations that need a title, because there are several with the same agent. */
export function useSiblingChats(ids: readonly string[]): Set<string> {
  const me = useSelf();
  const { model } = useClient();
  const byAgent = new Map<string, string[]>();
  for (const id of ids) {
    const chat = model.get(`chat:${id}`);
    const [agent] = chat?.kind === "direct" ? others(chat, me) : [];
    if (!agent || !isMyAgent(agent, me)) continue;
    byAgent.set(agent.username, [...(byAgent.get(agent.username) ?? []), id]);
  }
  return new Set([...byAgent.values()].filter(({ length }) => length > 1).flat());
}
