import { agentOf } from "@parley/testkit/client.ts";
import { type Client, isCallError } from "../../packages/client/src/index.ts";
import type { Crew, Member } from "./crew.ts";
import type { Operation, Request, Result } from "./history.ts";

const EMOJIS = ["👍", "🎉", "❤️"] as const;
/** Conversations that are started on the way. */
const MOST_CHATS = 30;
/** So many of one's latest messages are edited, deleted and sent again. */
const RECENT = 20;

/** How often people do what. */
export const actions = {
  send: 22,
  write: 10,
  ask: 5,
  resend: 6,
  edit: 9,
  delete: 4,
  react: 14,
  read: 8,
  hide: 5,
  name: 3,
  start: 1,
  seat: 5,
};
export type Action = keyof typeof actions;

/** One person, what they know and what they come to do. */
export class Mind {
  private readonly crew: Crew;
  private readonly member: Member;
  private readonly giveUp: AbortSignal;
  private readonly written: Promise<Operation>[];
  private readonly sent: Operation<"send">[] = [];
  private readonly reactedTo = new Set<string>();
  private count = 0;

  constructor(crew: Crew, member: Member, giveUp: AbortSignal, written: Promise<Operation>[]) {
    this.crew = crew;
    this.member = member;
    this.giveUp = giveUp;
    this.written = written;
  }

  async act(action: Action): Promise<void> {
    const chat = this.chances.pick(this.client.model.get("chats"));
    if (chat !== undefined) await this.actions[action](chat);
  }

  private get client(): Client {
    return this.member.client;
  }

  private get chances() {
    return this.member.chances;
  }

  private get username() {
    return this.member.person.username;
  }

  private readonly actions: Record<Action, (chat: string) => unknown> = {
    send: (chat) => this.send(chat, this.words()),
    write: (chat) => this.write(chat),
    ask: () => {
      const chat = this.chances.pick(this.crew.chats) ?? "";
      const agent = agentOf(this.crew.keeper.person, this.chances.pick(["claude", "gpt"]));
      return this.send(chat, `@${agent} ${this.words()}`, true);
    },
    resend: () => {
      const { chat, content, key, asks } = this.recent() ?? {};
      if (chat && content && key) return this.send(chat, content, asks, key);
    },
    edit: () => {
      const { chat, result } = this.recent(isMine) ?? {};
      const content = this.words();
      if (!chat || !result?.id) return;
      const message = result.id;
      return this.record({ kind: "edit", chat, message, content }, async () => {
        const { version } = await this.client.editMessage({ message_id: message, content });
        return { place: version };
      });
    },
    delete: () => {
      const { chat, result } = this.recent(isMine) ?? {};
      if (!chat || !result?.id) return;
      const message = result.id;
      return this.record({ kind: "delete", chat, message }, () =>
        this.client.deleteMessages({ chat_id: chat, message_ids: [message] }),
      );
    },
    react: (chat) => {
      const { items } = this.client.model.get(`messages:${chat}`);
      const shown = items.filter(({ delivery }) => delivery === "sent").slice(-RECENT);
      const message = this.chances.pick(shown)?.id;
      const emoji = this.chances.pick(EMOJIS) ?? "👍";
      const on = this.chances.number() < 0.6;
      if (!message) return;
      this.reactedTo.add(message);
      const target = { message_id: message, emoji };
      return this.record({ kind: "react", chat, message, emoji, on }, () =>
        on ? this.client.addReaction(target) : this.client.removeReaction(target),
      );
    },
    read: (chat) => {
      const seq = this.client.model.get(`chat:${chat}`)?.last_message?.seq ?? 0;
      return this.record({ kind: "read", chat, seq }, () =>
        this.client.readChat({ chat_id: chat, seq }),
      );
    },
    // The keeper sees everything, and what somebody reacted to stays in their sight.
    hide: async (chat) => {
      if (this.member === this.crew.keeper) return;
      const shown = this.client.model.get(`messages:${chat}`).items.slice(-RECENT);
      const others = shown.filter(({ id, sender, delivery }) => {
        const isOwn = sender.username === this.username || this.reactedTo.has(id);
        return delivery === "sent" && !isOwn;
      });
      const message_ids = others.slice(0, 1).map(({ id }) => id);
      if (message_ids.length === 0) return;
      await this.client.deleteMessagesForMe({ chat_id: chat, message_ids }).catch(refusalOf);
    },
    name: () => this.client.updateMe({ display_name: this.words() }).catch(refusalOf),
    start: () => this.start(),
    seat: (chat) => this.seat(chat),
  };

  /** No two are the same. */
  private words(): string {
    return `${this.username} says ${++this.count}`;
  }

  private recent(fits: (send: Operation<"send">) => boolean = () => true) {
    return this.chances.pick(this.sent.filter(fits).slice(-RECENT));
  }

  private async send(chat: string, content: string, asks = false, key = Bun.randomUUIDv7()) {
    const input = { chat_id: chat, content, client_msg_id: key };
    const request: Request = { kind: "send", chat, key, content, ...(asks && { asks }) };
    const operation = await this.record(request, async () => {
      const { id, seq } = await this.client.sendMessage(input);
      return { id, place: seq };
    });
    this.sent.push(operation as Operation<"send">);
  }

  /** Leaves the sending to the client, which sees to it that it arrives. */
  private write(chat: string): void {
    const content = this.words();
    if (!this.client.model.get(`messages:${chat}`).loaded) return;
    const key = this.client.model.send(chat, content);
    const request: Request = { kind: "send", chat, key, content };
    this.written.push(
      this.record(
        request,
        () => arrival(this.client, chat, key, this.giveUp),
        () => null,
      ),
    );
  }

  private async start(): Promise<void> {
    const { members, keeper, history } = this.crew;
    const title = `Chat ${Bun.randomUUIDv7()}`;
    const others = members.filter(() => this.chances.number() < 0.4);
    const usernames = new Set([keeper, ...others].map(({ person }) => person.username));
    usernames.delete(this.username);
    if (history.operations.filter(({ kind }) => kind === "start").length >= MOST_CHATS) return;
    const input = { title, usernames: [...usernames], kind: "group" as const };
    await this.record({ kind: "start", title, usernames: input.usernames }, async () => {
      const { id } = await this.client.startChat(input);
      return { id };
    });
  }

  /** Everybody may bring people in; the admin removes them. */
  private async seat(chat: string): Promise<void> {
    const { members, keeper } = this.crew;
    const known = this.client.model.get(`chat:${chat}`);
    const isSpared = (name: string) => name === keeper.person.username || name === this.username;
    const names = members.map(({ person }) => person.username).filter((name) => !isSpared(name));
    const present = new Set(known?.participants.map(({ username }) => username));
    const absent = names.filter((name) => !present.has(name));
    const on = absent.length > 0 && this.chances.number() < 0.6;
    const username = this.chances.pick(on ? absent : names.filter((name) => present.has(name)));
    if (!username || (!on && known?.admin !== this.username)) return;
    await this.record({ kind: "seat", chat, username, on }, () =>
      on
        ? this.client.addChatMembers({ chat_id: chat, usernames: [username] })
        : this.client.removeChatMember({ chat_id: chat, username }),
    );
  }

  private record(
    request: Request,
    call: () => Promise<unknown>,
    refusal: (error: unknown) => string | null = refusalOf,
  ): Promise<Operation> {
    const answered = async () => toResult(await call());
    return this.crew.history.record(this.username, request, answered, refusal);
  }
}

/** One's own, and nothing that an agent may be about to answer. */
const isMine = ({ outcome, asks }: Operation<"send">) => outcome === "ok" && !asks;

function toResult(answer: unknown): Result {
  const { id, place } = (answer ?? {}) as Result;
  return { ...(id !== undefined && { id }), ...(place !== undefined && { place }) };
}

/** The code of a definite refusal; null when it may have happened all the same. */
function refusalOf(error: unknown): string | null {
  if (!isCallError(error)) throw error;
  return ["unavailable", "internal"].includes(error.code) ? null : error.code;
}

/** Resolves when the client shows its message as sent. */
function arrival(
  { model }: Client,
  chat: string,
  key: string,
  giveUp: AbortSignal,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    const stopWatching = model.watch(`messages:${chat}`, check);
    const done = () => {
      stopWatching();
      giveUp.removeEventListener("abort", refuse);
    };
    const refuse = () => {
      done();
      reject(new Error("it did not arrive"));
    };
    giveUp.addEventListener("abort", refuse);
    function check(): void {
      const { items } = model.get(`messages:${chat}`);
      const mine = items.find(({ client_msg_id }) => client_msg_id === key);
      if (mine?.delivery === "failed") refuse();
      if (mine?.delivery !== "sent") return;
      done();
      resolve({ id: mine.id, place: mine.seq });
    }
    check();
  });
}
