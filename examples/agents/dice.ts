import { createAgent, TurnFailure } from "@parley/client";

/** An agent that rolls dice: «@ada:dice 3d6». Run with PARLEY_URL and AGENT_TOKEN. */

const { PARLEY_URL = "http://localhost:8080", AGENT_TOKEN = "" } = process.env;

const agent = createAgent({
  url: PARLEY_URL,
  token: AGENT_TOKEN,
  onTurn: async (turn) => {
    const [, count = "1", sides = "6"] =
      /(\d{1,2})?d(\d{1,3})/.exec(turn.message?.content ?? "") ?? [];
    if (Number(sides) < 2) throw new TurnFailure("A die needs at least two sides.");
    await turn.status("rolling");
    const rolled = Array.from({ length: Number(count) }, () =>
      Math.ceil(Math.random() * Number(sides)),
    );
    for (const value of rolled) {
      turn.signal.throwIfAborted();
      turn.write(`🎲 ${value} `);
    }
    turn.write(`= **${rolled.reduce((sum, value) => sum + value, 0)}**`);
  },
  onError: (error) => console.error(error),
});

console.log("The agent is running.");
process.on("SIGTERM", () => void agent.close());
await agent.closed;
