import { openStore } from "../compose.ts";
import { readConfig } from "../config.ts";
import { print } from "./output.ts";

/** Makes clients fetch everything again, after a restore that the store cannot detect. */
export async function renewHistory(): Promise<void> {
  const store = await openStore(readConfig());
  await store.write((tx) => tx.renewHistory());
  print("Clients will fetch all conversations again when they next connect.");
  await store.close();
}
