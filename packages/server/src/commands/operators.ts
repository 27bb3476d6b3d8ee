import { command } from "./command.ts";
import { openService, person } from "./people.ts";

const details = "Works while the server runs. PARLEY_OPERATORS can name further operators.";

export const listOperators = command({
  name: "operators list",
  summary: "List the operators.",
  details,
  examples: [{ line: "operators list", summary: "Prints one username per line." }],
  async run() {
    await using service = await openService();
    const { config } = service;
    const added = await service.store.read((tx) => tx.operators());
    const usernames = added.map(({ username }) => username);
    const lines = [...usernames, ...config.operators.map((name) => `${name} (PARLEY_OPERATORS)`)];
    return {
      json: { operators: usernames, configured: config.operators },
      text: lines.join("\n"),
    };
  },
});

export const addOperator = command({
  name: "operators add",
  summary: "Make a person an operator.",
  details,
  arguments: person,
  examples: [{ line: "operators add alice", summary: "Makes alice an operator." }],
  async run({ arguments: { username } }) {
    await using service = await openService();
    const { log } = service;
    const account = await service.person(username);
    const added = await log.write(async (tx, record) => {
      const isNew = await tx.addOperator(account.id, Date.now());
      if (isNew) await record("operator_added", { account: account.username });
      return isNew;
    });
    return {
      json: { username: account.username, added },
      text: `${account.username} is ${added ? "now an operator" : "an operator already"}.`,
    };
  },
});

export const removeOperator = command({
  name: "operators remove",
  summary: "Make an operator an ordinary person again.",
  details,
  arguments: person,
  examples: [{ line: "operators remove alice", summary: "Alice is no longer an operator." }],
  async run({ arguments: { username } }) {
    await using service = await openService();
    const { config, log } = service;
    const account = await service.person(username);
    const removed = await log.write(async (tx, record) => {
      const wasOne = await tx.removeOperator(account.id);
      if (wasOne) await record("operator_removed", { account: account.username });
      return wasOne;
    });
    const text = config.operators.includes(account.username)
      ? `${account.username} stays an operator: PARLEY_OPERATORS names them.`
      : `${account.username} is ${removed ? "no longer" : "not"} an operator.`;
    return { json: { username: account.username, removed }, text };
  },
});
