import { afterAll, beforeAll } from "bun:test";
import { startPostgres, type TestPostgres } from "../../../tests/support/postgres.ts";
import { openPostgresStore } from "../src/store/postgres/index.ts";
import { storeContract } from "./support/store-contract/index.ts";

let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await startPostgres();
}, 120_000);
afterAll(() => postgres[Symbol.asyncDispose]());

storeContract("PostgreSQL", async () => {
  const database = await postgres.database();
  const open = () => openPostgresStore({ url: database.url, tls: false, keepsEvents: true });
  let store = await open();
  return {
    store,
    reopen: async () => {
      await store.close();
      store = await open();
      return store;
    },
    dispose: async () => {
      await store.close();
      await database.drop();
    },
  };
});
