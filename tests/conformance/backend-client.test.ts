import { expect, test } from "bun:test";
import { Backend as TestBackend } from "@parley/testkit/backend.ts";
import { sharedServer } from "@parley/testkit/shared-server.ts";
import { createBackend, isCallError } from "../../packages/client/src/index.ts";

const CLIENT = new URL("../../packages/client/", import.meta.url);

const server = await sharedServer();
const { key } = new TestBackend(server.url);
// A call can take long on a busy machine.
const backend = createBackend({ url: `${server.url}/`, key, timeoutMs: 120_000 });
const users = [
  { external_id: "kunde-ß-客", username: "backend_ada", display_name: "Ada" },
  { external_id: "4712", username: "backend_bob", display_name: "Bob" },
];

test("the SDK's client for backends sets users up again without creating them twice", async () => {
  const created = async () => {
    const { items } = await backend.upsertUsers({ users });
    return items.map((item) => item.created);
  };
  expect(await created()).toEqual([true, true]);
  expect(await created()).toEqual([false, false]);
});

test("the SDK's client for backends acts for people by username and by external id", async () => {
  await backend.upsertUsers({ users });
  const ada = backend.as({ external_id: "kunde-ß-客" });
  const chat = await ada.startChat({ usernames: ["backend_bob"] });
  const input = { chat_id: chat.id, content: "Is it in stock?", client_msg_id: "order-1" };
  const message = await ada.sendMessage(input);
  expect(message.sender.username).toBe("backend_ada");
  expect((await ada.sendMessage(input)).id).toBe(message.id);
  expect((await backend.as("backend_bob").getChat({ chat_id: chat.id })).unread_count).toBe(1);
});

test("the SDK's client for backends creates and lists webhooks in its own right", async () => {
  const { id, secret } = await backend.createWebhook({
    url: "https://93.184.216.34/hook",
    events: ["events.messageNew"],
  });
  expect(secret).toBeString();
  expect((await backend.getWebhooks()).items.map((each) => each.id)).toContain(id);
});

test("the README's example for backends runs again and again, and creates nothing twice", async () => {
  const readme = await Bun.file(new URL("README.md", CLIENT)).text();
  const [, code = ""] = /^```js\n(import { createBackend }.*?)^```$/ms.exec(readme) ?? [];
  const example = code
    .replace("@parley/client", new URL("src/index.ts", CLIENT).href)
    .replace("http://localhost:8080", server.url)
    .replace("https://shop.example.com/parley", "https://93.184.216.34/hook");
  const runExample = async () => {
    const print = "console.log(JSON.stringify([items, secret]));";
    const child = Bun.spawn([process.execPath, "-e", `${example}\n${print}`], {
      env: { ...process.env, PARLEY_SERVICE_KEY: key },
    });
    const [[order], secret] = JSON.parse(await new Response(child.stdout).text());
    const { items } = await backend
      .as({ external_id: "4712" })
      .getChatHistory({ chat_id: order.chat.id });
    return {
      id: order.chat.id,
      created: order.created,
      secret,
      messages: items.map(({ id }) => id),
    };
  };
  const first = await runExample();
  expect(first).toMatchObject({ created: true, messages: [expect.any(String)] });
  expect(await runExample()).toEqual({ ...first, created: false });
});

test("the SDK's client for backends throws the service's errors, and acts for nobody without a name", async () => {
  const error = await backend
    .as("backend_nobody")
    .getMe()
    .catch((thrown: unknown) => thrown);
  expect(isCallError(error) && error.code).toBe("bad_request");
  expect(() => backend.as("")).toThrow(TypeError);
});
