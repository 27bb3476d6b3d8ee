import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { AgentTurn } from "@parley/client";

/** A JSON-RPC 2.0 message of the Agent Client Protocol: one line of JSON. */
interface RpcMessage {
  id?: number | string;
  method?: string;
  params?: Record<string, unknown>;
  result?: unknown;
  error?: { message: string };
}

interface Pending {
  resolve(result: unknown): void;
  reject(error: Error): void;
}

/**
 * The client side of the Agent Client Protocol (version 1, https://agentclientprotocol.com) over
 * standard input and output. It offers the agent neither files nor terminals, and permits nothing:
 * nobody at this end can be asked.
 */
export class AcpAgent {
  readonly #child: ChildProcess;
  readonly #pending = new Map<number, Pending>();
  /** The sessions by conversation, and the turns that run in them by session. */
  readonly #sessions = new Map<string, Promise<string>>();
  readonly #turns = new Map<string, AgentTurn>();
  #lastId = 0;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  static async start(command: string, args: string[], env: NodeJS.ProcessEnv): Promise<AcpAgent> {
    const child = spawn(command, args, { env, stdio: ["pipe", "pipe", "inherit"] });
    const agent = new AcpAgent(child);
    void agent.#read();
    await agent.#call("initialize", { protocolVersion: 1, clientCapabilities: {} });
    return agent;
  }

  stop(): void {
    this.#child.kill();
  }

  /** Sends the message to the session of the conversation. What the agent says is the answer. */
  async answer(turn: AgentTurn): Promise<void> {
    const sessionId = await this.#sessionOf(turn.conversationId);
    const cancel = () => this.#send({ method: "session/cancel", params: { sessionId } });
    turn.signal.addEventListener("abort", cancel);
    this.#turns.set(sessionId, turn);
    try {
      const prompt = [{ type: "text", text: turn.message?.content ?? "" }];
      const result = await this.#call("session/prompt", { sessionId, prompt });
      const { stopReason } = result as { stopReason: string };
      if (stopReason === "refusal") throw new Error("the agent refused");
    } finally {
      turn.signal.removeEventListener("abort", cancel);
      this.#turns.delete(sessionId);
    }
  }

  #sessionOf(conversation: string): Promise<string> {
    const known = this.#sessions.get(conversation);
    if (known) return known;
    const made = this.#call("session/new", { cwd: process.cwd(), mcpServers: [] }).then(
      (result) => (result as { sessionId: string }).sessionId,
    );
    this.#sessions.set(conversation, made);
    return made;
  }

  #call(method: string, params: object): Promise<unknown> {
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.#send({ id, method, params: { ...params } });
    });
  }

  #send(message: RpcMessage): void {
    this.#child.stdin?.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  }

  async #read(): Promise<void> {
    const ended = once(this.#child, "close");
    if (!this.#child.stdout) return;
    for await (const line of createInterface({ input: this.#child.stdout })) {
      if (line.trim() !== "") this.#receive(JSON.parse(line) as RpcMessage);
    }
    await ended;
    for (const { reject } of this.#pending.values()) reject(new Error("the agent has exited"));
    this.#pending.clear();
  }

  #receive({ id, method, params, result, error }: RpcMessage): void {
    if (method === "session/update") this.#update(params ?? {});
    else if (method === "session/request_permission" && id !== undefined) {
      this.#send({ id, result: { outcome: { outcome: "cancelled" } } });
    } else if (method !== undefined && id !== undefined) {
      this.#send({ id, error: { ...{ code: -32601 }, message: "method not found" } });
    } else if (typeof id === "number") {
      const pending = this.#pending.get(id);
      this.#pending.delete(id);
      if (error) pending?.reject(new Error(error.message));
      else pending?.resolve(result);
    }
  }

  #update({ sessionId, update }: Record<string, unknown>): void {
    const turn = this.#turns.get(String(sessionId));
    const { sessionUpdate, content, title } = update as {
      sessionUpdate: string;
      content?: { type: string; text?: string };
      title?: string;
    };
    if (sessionUpdate === "agent_message_chunk" && content?.type === "text") {
      void turn?.write(content.text ?? "");
    } else if (sessionUpdate === "tool_call" && title) {
      turn?.status(title.slice(0, 200)).catch(() => undefined);
    }
  }
}
