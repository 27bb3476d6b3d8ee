import { command } from "./command.ts";
import { openService } from "./people.ts";

export const renewHistory = command({
  name: "history renew",
  summary: "Make all clients fetch everything again.",
  details: "For use after a restore that the server cannot detect, such as that of a whole disk.",
  examples: [{ line: "history renew", summary: "While the server runs, or before it starts." }],
  async run() {
    await using service = await openService();
    await service.store.write((tx) => tx.renewHistory());
    return {
      json: { renewed: true },
      text: "Clients will fetch all conversations again when they next connect.",
    };
  },
});
