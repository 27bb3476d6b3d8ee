import { afterAll, expect, test } from "bun:test";
import { type OperationName, operations } from "@parley/protocol";
import { groupOf, post, say, signUp } from "@parley/testkit/client.ts";
import { operatorAt } from "@parley/testkit/operators.ts";
import { noRates, startServer } from "@parley/testkit/server.ts";

const server = await startServer({ ...noRates, PARLEY_OPERATORS: "olga" });
afterAll(() => server[Symbol.asyncDispose]());
const olga = await operatorAt(server, "olga");
const chat = await groupOf(olga, await signUp(server.url, "bob"));
const message = await say(olga, chat, "hello");

/** Fields beside the cursor, for lists that need some or whose cursors depend on them. */
const fields: Partial<Record<OperationName, object[]>> = {
  getUsers: [{}, { query: "bo" }],
  getMessageReactions: [{ message_id: message.id }],
  searchMessages: [{ query: "hello" }],
  getDeliveries: [{ webhook_id: Bun.randomUUIDv7() }],
};
const lists = (Object.keys(operations) as OperationName[])
  .filter((name) => "cursor" in (operations[name].input as unknown as { shape: object }).shape)
  .flatMap((name) =>
    (fields[name] ?? [{}]).map((others) => {
      const title = [name, ...Object.keys(others)].join(" with ");
      return { title, name, others };
    }),
  );

/** Places that no list of the server has, as JSON: it can express what strings cannot. */
const forged = [
  '"a\\u0000b"',
  '"\\ud800"',
  '{"name":"a\\u0000b","username":"b"}',
  '{"name":"a","username":"\\udc00"}',
  '{"updated_at":1,"id":"x"}',
  '{"updated_at":1,"id":"\\u0000"}',
  "1.5",
  "[]",
];

test.each(lists)("$title refuses cursors that are not of its list", async ({ name, others }) => {
  for (const place of forged) {
    const cursor = Buffer.from(place).toString("base64url");
    const { body } = await post(server.url, name, { ...others, cursor }, olga.token);
    expect([place, body]).toMatchObject([place, { code: "bad_request" }]);
  }
});
