import { openStore } from "../compose/backends.ts";
import { readConfig } from "../config.ts";
import { command } from "./command.ts";

export const renewHistory = command({
  name: "history renew",
  summary: "Make all clients fetch everything again.",
  details: "For use after a restore that the server cannot detect, such as that of a whole disk.",
  examples: [{ line: "history renew", summary: "While the server runs, or before it starts." }],
  async run() {
    const store = await openStore(readConfig());
    await store.write((tx) => tx.renewHistory());
    await store.close();
    return {
      json: { renewed: true },
      text: "Clients will fetch all conversations again when they next connect.",
    };
  },
});
