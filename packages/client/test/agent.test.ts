import { describe, expect, test } from "bun:test";
import { answerTo, groupOf, replyTo, say, signUp } from "@parley/testkit/client.ts";
import { externalAgent } from "@parley/testkit/external-agents.ts";
import { FaultyProxy } from "@parley/testkit/proxy.ts";
import { sharedServer } from "@parley/testkit/shared-server.ts";
import { until } from "@parley/testkit/until.ts";
import { type AgentOptions, type AgentTurn, createAgent, TurnFailure } from "../src/index.ts";
import { collectReportedErrors } from "./support/reported-errors.ts";

const server = await sharedServer();
const alice = await signUp(server.url, "alice");

/** An agent of alice that a function answers for, and a socket of alice. */
async function start(onTurn: AgentOptions["onTurn"], options: Partial<AgentOptions> = {}) {
  const made = await externalAgent(alice);
  const program = createAgent({
    url: server.url,
    token: made.agent.token,
    reconnectMs: { min: 2, max: 20 },
    onTurn,
    ...options,
  });
  const reader = await alice.connect();
  return {
    ...made,
    program,
    reader,
    [Symbol.asyncDispose]: async () => {
      await program.close();
      await reader[Symbol.asyncDispose]();
    },
  };
}

const whenAborted = ({ signal }: AgentTurn) =>
  new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve());
  });

describe("createAgent", () => {
  test("answers with what onTurn writes", async () => {
    await using started = await start(async (turn) => {
      await turn.status("thinking");
      turn.usage({ input_tokens: 5, output_tokens: 7 });
      turn.write("You said: ");
      // A character may come in two halves.
      turn.write("\ud83d");
      turn.write(`\ude42 ${turn.message?.content}, after ${turn.context.length - 1} others.`);
    });
    const { chat, reader } = started;
    const asked = await say(alice, chat, "hello");
    expect(await answerTo(reader, asked)).toMatchObject({
      content: "You said: 🙂 hello, after 0 others.",
      turn: { status: "complete", usage: { input_tokens: 5, output_tokens: 7 } },
    });
    const { id } = await replyTo(reader, asked);
    await reader.event("events.turnStatus", ({ message_id }) => message_id === id);
  });

  test("ends the call that waits for turns when it is closed", async () => {
    const waits = Promise.withResolvers<AbortSignal | null | undefined>();
    const observed = async (...[url, init]: Parameters<typeof fetch>) => {
      if (String(url).endsWith("claimTurn")) waits.resolve(init?.signal);
      return fetch(url, init);
    };
    await using started = await start(() => {}, { fetch: observed as typeof fetch });
    const signal = await waits.promise;
    await started.program.close();
    expect(signal?.aborted).toBe(true);
    await started.program.closed;
  });

  test("streams long answers in pieces that add up", async () => {
    const text = "Grüße 🙂 ".repeat(5000);
    await using started = await start((turn) => turn.write(text));
    const asked = await say(alice, started.chat, "hello");
    expect((await answerTo(started.reader, asked)).content).toBe(text);
  });

  test("fails turns that throw, and tells people only what is meant for them", async () => {
    const errors: unknown[] = [];
    const thrown = [new TurnFailure("The kitchen is closed."), new Error("password=1234")];
    const unthrown = thrown.values();
    const onTurn = () => {
      throw unthrown.next().value;
    };
    await using started = await start(onTurn, { onError: (error) => errors.push(error) });
    const { chat, reader } = started;
    const answer = async () => (await answerTo(reader, await say(alice, chat, "hello"))).content;
    expect(await answer()).toBe("The kitchen is closed.");
    expect(await answer()).not.toContain("1234");
    // The program is told when the server has replied, which may be after people see the answer.
    await until(() => errors.length === thrown.length, "both errors are reported");
    expect(errors).toEqual(thrown);
  });

  test("goes on to answer although onError throws", async () => {
    using reported = collectReportedErrors();
    const ofProgram = new Error("the log is full");
    const onTurn = ({ message, write }: AgentTurn) => {
      if (message?.content === "fail") throw new Error("cannot answer");
      write("fine");
    };
    const onError = () => {
      throw ofProgram;
    };
    await using started = await start(onTurn, { onError, maxTurns: 1 });
    const { chat, reader } = started;
    const answer = async (content: string) => answerTo(reader, await say(alice, chat, content));
    expect(await answer("fail")).toMatchObject({ turn: { status: "failed" } });
    expect(await answer("hello")).toMatchObject({ content: "fine", turn: { status: "complete" } });
    expect(reported.errors).toEqual([ofProgram]);
  });

  test("aborts the signal when somebody stops the answer", async () => {
    const aborted = Promise.withResolvers<AgentTurn>();
    await using started = await start(async (turn) => {
      await turn.write("Hel");
      await whenAborted(turn);
      aborted.resolve(turn);
    });
    const { chat, reader } = started;
    const asked = await say(alice, chat, "hello");
    const { id } = await replyTo(reader, asked);
    await reader.event("events.messageDelta", (delta) => delta.id === id);
    await alice.call("stopAgentTurn", { message_id: id });
    await aborted.promise;
    expect(await answerTo(reader, asked)).toMatchObject({
      content: "Hel",
      turn: { status: "stopped" },
    });
  });

  test("runs as many turns at once as it may", async () => {
    let running = 0;
    let most = 0;
    const release = Promise.withResolvers<void>();
    const both = Promise.withResolvers<void>();
    const onTurn = async (turn: AgentTurn) => {
      most = Math.max(most, ++running);
      if (running === 2) both.resolve();
      await release.promise;
      turn.write("done");
      running--;
    };
    await using started = await start(onTurn, { maxTurns: 2 });
    const { agent, reader } = started;
    const asked = await Promise.all(
      [1, 2, 3].map(async () =>
        say(alice, await groupOf(alice, agent), `@${agent.username} hello`),
      ),
    );
    await both.promise;
    release.resolve();
    for (const each of asked) expect((await answerTo(reader, each)).content).toBe("done");
    expect(most).toBe(2);
  });

  test("fails its turns when it is closed", async () => {
    const begun = Promise.withResolvers<void>();
    await using started = await start(async (turn) => {
      await turn.write("Hel");
      begun.resolve();
      await whenAborted(turn);
    });
    const asked = await say(alice, started.chat, "hello");
    await begun.promise;
    await started.program.close();
    expect(await answerTo(started.reader, asked)).toMatchObject({
      content: "Hel",
      turn: { status: "failed", error: { code: "agent_failed" } },
    });
  });

  test("stops when its token is revoked", async () => {
    await using started = await start(() => {});
    await alice.call("revokeAgentToken", { token_id: started.token_id });
    await expect(started.program.closed).rejects.toMatchObject({ code: "unauthorized" });
  });

  test("writes everything once although connections break", async () => {
    await using proxy = await FaultyProxy.to(server.url);
    const pieces = Array.from({ length: 30 }, (_, place) => `piece ${place}; `);
    const onTurn = async (turn: AgentTurn) => {
      for (const [place, piece] of pieces.entries()) {
        const stored = turn.write(piece);
        if (place % 7 === 3) proxy.cut();
        await stored;
      }
    };
    await using started = await start(onTurn, { url: proxy.url });
    const asked = await say(alice, started.chat, "hello");
    expect(await answerTo(started.reader, asked)).toMatchObject({
      content: pieces.join(""),
      turn: { status: "complete" },
    });
  });

  test("works over HTTP alone", async () => {
    const refused = class {
      constructor() {
        throw new Error("there is no WebSocket here");
      }
    } as unknown as NonNullable<AgentOptions["WebSocket"]>;
    await using started = await start((turn) => turn.write("hi"), { WebSocket: refused });
    const asked = await say(alice, started.chat, "hello");
    expect((await answerTo(started.reader, asked)).content).toBe("hi");
  });
});
