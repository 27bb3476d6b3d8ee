import { expect, test } from "bun:test";
import { groupOf, people } from "@parley/testkit/client.ts";
import { upload } from "@parley/testkit/files.ts";
import { startServer } from "@parley/testkit/server.ts";
import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import {
  ParleyProvider,
  useAgents,
  useChat,
  useChatIds,
  useClient,
  useDraft,
  useFileLinks,
  useMe,
  useMessages,
  useStatus,
  useTyping,
  useUnread,
} from "../src/react.ts";
import { connected, delivered } from "./support/clients.ts";

function Everything({ id }: { id: string }) {
  const [draft] = useDraft(id);
  return JSON.stringify({
    status: useStatus(),
    me: useMe()?.username,
    chats: useChatIds().length,
    title: useChat(id)?.title,
    messages: useMessages(id).items.map(({ content }) => content),
    typing: useTyping(id).actors.length,
    agents: useAgents().length,
    unread: useUnread().human,
    draft,
    client: useClient().status,
  });
}

test("components read every piece of the model", async () => {
  await using server = await startServer();
  const [ann] = await people(server.url, "ann");
  using client = await connected(ann, server.url);
  const { id } = await client.startChat({ usernames: [], title: "Notes" });
  await client.model.openChat(id);
  client.model.send(id, "remember");
  client.model.setDraft(id, "the mil");
  await delivered(client, id);
  const page = createElement(ParleyProvider, { client }, createElement(Everything, { id }));
  const html = renderToStaticMarkup(page).replaceAll("&quot;", '"');
  expect(JSON.parse(html)).toEqual({
    status: "online",
    me: ann.username,
    chats: 1,
    title: "Notes",
    messages: ["remember"],
    typing: 0,
    agents: 2,
    unread: 0,
    draft: "the mil",
    client: "online",
  });
});

test("a component reads links to files", async () => {
  await using server = await startServer();
  const [ann] = await people(server.url, "ann");
  const { id: chat } = await groupOf(ann);
  const file = await upload(ann, chat, "a.txt", "hello");
  using client = await connected(ann, server.url);
  let renders = 0;
  const Url = () => {
    renders++;
    return useFileLinks([file.id])[file.id]?.url ?? "loading";
  };
  const render = () =>
    renderToStaticMarkup(createElement(ParleyProvider, { client }, createElement(Url)));
  expect(render()).toBe("loading");
  const [link] = await client.links.get([file.id]);
  expect(render().replaceAll("&amp;", "&")).toBe(link?.url ?? "");
  expect(renders).toBe(2);
});

test("a component outside of ParleyProvider throws an error that names it", () => {
  const lost = createElement(Everything, { id: "" });
  expect(() => renderToStaticMarkup(lost)).toThrow("ParleyProvider");
});
