import { closeCodes } from "@parley/protocol";
import type { Membership } from "../changes/change.ts";
import { allClients, type Client, conversationTopic, type People } from "./people.ts";

export function closeClientsOfSession(people: People, sessionId: string): void {
  for (const client of allClients(people)) {
    if (client.session_id === sessionId) client.close(closeCodes.signedOut, "signed out");
  }
}

export function closeClientsOfAccount(people: People, username: string): void {
  for (const client of people.get(username)?.clients ?? []) {
    client.close(closeCodes.signedOut, "this account is suspended or deleted");
  }
}

/** Closes the clients that would have an unnoticed gap: they catch up when they reconnect. */
export function closeAfterLoss(clients: Iterable<Client>, conversation: string | undefined): void {
  const topic = conversation && conversationTopic(conversation);
  for (const client of clients) {
    if (topic && !client.isSubscribed(topic)) continue;
    if (topic) client.unsubscribe(topic);
    client.close(closeCodes.goingAway, "events were missed, please reconnect");
  }
}

/** Clients that are connecting read their conversations again, and so do others when they reconnect. */
export function readMembershipsAgain(people: People, { conversation, users }: Membership): void {
  for (const person of users.flatMap((username) => people.get(username) ?? [])) {
    person.membership++;
    closeAfterLoss(person.clients, conversation);
  }
}
