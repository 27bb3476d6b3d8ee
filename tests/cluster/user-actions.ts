import { agentOf } from "@parley/testkit/client.ts";
import { type Client, isCallError } from "../../packages/client/src/index.ts";
import type { Operation, Request, Result } from "./history.ts";
import type { TestUser, TestUsers } from "./users.ts";

const EMOJIS = ["👍", "🎉", "❤️"] as const;
/** The most conversations that the users start during a run. */
const MOST_CHATS = 30;
/** Users edit, delete, resend and react to this number of latest messages. */
const RECENT_MESSAGES = 20;

/** The relative frequency of each action. */
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
  membership: 5,
};
export type Action = keyof typeof actions;

/** The actions of one user, with what they need to know of earlier ones. */
export class UserActions {
  private readonly users: TestUsers;
  private readonly member: TestUser;
  private readonly giveUp: AbortSignal;
  private readonly written: Promise<Operation>[];
  private readonly sent: Operation<"send">[] = [];
  private readonly reactedTo = new Set<string>();
  private count = 0;

  constructor(
    users: TestUsers,
    member: TestUser,
    giveUp: AbortSignal,
    written: Promise<Operation>[],
  ) {
    this.users = users;
    this.member = member;
    this.giveUp = giveUp;
    this.written = written;
  }

  async perform(action: Action): Promise<void> {
    const chat = this.random.pick(this.client.model.get("chats"));
    if (chat !== undefined) await this.actions[action](chat);
  }

  private get client(): Client {
    return this.member.client;
  }

  private get random() {
    return this.member.random;
  }

  private get username() {
    return this.member.person.username;
  }

  private readonly actions: Record<Action, (chat: string) => unknown> = {
    send: (chat) => this.send(chat, this.words()),
    write: (chat) => this.write(chat),
    ask: () => {
      const chat = this.random.pick(this.users.chats) ?? "";
      const agent = agentOf(this.users.owner.person, this.random.pick(["claude", "gpt"]));
      return this.send(chat, `@${agent} ${this.words()}`, true);
    },
    resend: () => {
      const { chat, content, key, asks } = this.recent() ?? {};
      if (chat && content && key) return this.send(chat, content, asks, key);
    },
    edit: () => {
      const { chat, result } = this.recent(isPlain) ?? {};
      const content = this.words();
      if (!chat || !result?.id) return;
      const message = result.id;
      return this.record({ kind: "edit", chat, message, content }, async () => {
        const { version } = await this.client.editMessage({ message_id: message, content });
        return { seq: version };
      });
    },
    delete: () => {
      const { chat, result } = this.recent(isPlain) ?? {};
      if (!chat || !result?.id) return;
      const message = result.id;
      return this.record({ kind: "delete", chat, message }, () =>
        this.client.deleteMessages({ chat_id: chat, message_ids: [message] }),
      );
    },
    react: (chat) => {
      const { items } = this.client.model.get(`messages:${chat}`);
      const shown = items.filter(({ delivery }) => delivery === "sent").slice(-RECENT_MESSAGES);
      const message = this.random.pick(shown)?.id;
      const emoji = this.random.pick(EMOJIS) ?? "👍";
      const on = this.random.number() < 0.6;
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
    // The owner hides nothing, so that they see every message. Nobody hides what they reacted to.
    hide: async (chat) => {
      if (this.member === this.users.owner) return;
      const shown = this.client.model.get(`messages:${chat}`).items.slice(-RECENT_MESSAGES);
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
    membership: (chat) => this.changeMembers(chat),
  };

  /** Content that is unique in the run. */
  private words(): string {
    return `${this.username} says ${++this.count}`;
  }

  private recent(fits: (send: Operation<"send">) => boolean = () => true) {
    return this.random.pick(this.sent.filter(fits).slice(-RECENT_MESSAGES));
  }

  private async send(chat: string, content: string, asks = false, key = Bun.randomUUIDv7()) {
    const input = { chat_id: chat, content, client_msg_id: key };
    const request: Request = { kind: "send", chat, key, content, ...(asks && { asks }) };
    const operation = await this.record(request, async () => {
      const { id, seq } = await this.client.sendMessage(input);
      return { id, seq };
    });
    this.sent.push(operation as Operation<"send">);
  }

  /** Sends through the outbox of the client, which retries until the message is delivered. */
  private write(chat: string): void {
    const content = this.words();
    if (!this.client.model.get(`messages:${chat}`).loaded) return;
    const key = this.client.model.send(chat, content);
    const request: Request = { kind: "send", chat, key, content };
    this.written.push(
      this.record(
        request,
        () => delivery(this.client, chat, key, this.giveUp),
        () => null,
      ),
    );
  }

  private async start(): Promise<void> {
    const { members, owner, history } = this.users;
    const title = `Chat ${Bun.randomUUIDv7()}`;
    const others = members.filter(() => this.random.number() < 0.4);
    const usernames = new Set([owner, ...others].map(({ person }) => person.username));
    usernames.delete(this.username);
    if (history.operations.filter(({ kind }) => kind === "start").length >= MOST_CHATS) return;
    const input = { title, usernames: [...usernames], kind: "group" as const };
    await this.record({ kind: "start", title, usernames: input.usernames }, async () => {
      const { id } = await this.client.startChat(input);
      return { id };
    });
  }

  /** Adds a user to the conversation, or removes one if this user is its admin. */
  private async changeMembers(chat: string): Promise<void> {
    const { members, owner } = this.users;
    const known = this.client.model.get(`chat:${chat}`);
    const isExcluded = (name: string) => name === owner.person.username || name === this.username;
    const names = members.map(({ person }) => person.username).filter((name) => !isExcluded(name));
    const present = new Set(known?.participants.map(({ username }) => username));
    const absent = names.filter((name) => !present.has(name));
    const on = absent.length > 0 && this.random.number() < 0.6;
    const username = this.random.pick(on ? absent : names.filter((name) => present.has(name)));
    if (!username || (!on && known?.admin !== this.username)) return;
    await this.record({ kind: "membership", chat, username, on }, () =>
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
    return this.users.history.record(this.username, request, answered, refusal);
  }
}

/** Whether the message was acknowledged and asks no agent. */
const isPlain = ({ outcome, asks }: Operation<"send">) => outcome === "ok" && !asks;

function toResult(answer: unknown): Result {
  const { id, seq } = (answer ?? {}) as Result;
  return { ...(id !== undefined && { id }), ...(seq !== undefined && { seq }) };
}

/** The code of a refusal; null if the operation may have taken effect. */
function refusalOf(error: unknown): string | null {
  if (!isCallError(error)) throw error;
  return ["unavailable", "internal"].includes(error.code) ? null : error.code;
}

/** Resolves when the client shows its message as sent. */
function delivery(
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
      reject(new Error("the message was not delivered"));
    };
    giveUp.addEventListener("abort", refuse);
    function check(): void {
      const { items } = model.get(`messages:${chat}`);
      const mine = items.find(({ client_msg_id }) => client_msg_id === key);
      if (mine?.delivery === "failed") refuse();
      if (mine?.delivery !== "sent") return;
      done();
      resolve({ id: mine.id, seq: mine.seq });
    }
    check();
  });
}
