import { type Client, createClient, type LocalMessage } from "@parley/client";

const element = <Kind extends HTMLElement = HTMLElement>(id: string) =>
  document.getElementById(id) as Kind;
const post = (path: string, body?: object) =>
  fetch(path, { method: "POST", body: JSON.stringify(body ?? {}) });

element<HTMLFormElement>("sign-in").onsubmit = async (event) => {
  event.preventDefault();
  const form = new FormData(event.currentTarget as HTMLFormElement);
  const response = await post("/sign-in", Object.fromEntries(form));
  if (response.ok) location.reload();
  else element("problem").textContent = (await response.json()).problem;
};

let openId: string | undefined;

const { name, parleyUrl } = await (await fetch("/me")).json();
if (name) await showChat();

async function showChat(): Promise<void> {
  element("sign-in").hidden = true;
  element("signed-in").hidden = false;
  element("who").textContent = `You are signed in as ${name}.`;
  element("ask").onclick = () => post("/ask");

  const client = createClient({ url: parleyUrl, getToken });
  element("sign-out").onclick = async () => {
    client.close();
    await post("/sign-out");
    location.reload();
  };
  const { model } = client;
  model.watch("status", () => {
    element("status").textContent = client.status;
  });
  await client.connect();
  const openFirst = () => openChat(client, model.get("chats")[0]);
  model.watch("chats", openFirst);
  openFirst();
}

/** Called at the start, and whenever a token has ended. */
async function getToken(): Promise<string> {
  const response = await post("/chat-token");
  // Signed out of the shop, perhaps in another tab: the page shows the sign-in again.
  if (response.status === 401) location.reload();
  return (await response.json()).token;
}

function openChat(client: Client, id: string | undefined): void {
  if (id === undefined || openId !== undefined) return;
  openId = id;
  const { model } = client;
  element("ask").hidden = true;
  element("chat").hidden = false;
  const show = () => {
    const chat = model.get(`chat:${id}`);
    element("title").textContent = chat?.title ?? "";
    const names = chat?.participants.map((each) => `${each.display_name} (@${each.username})`);
    element("participants").textContent = names?.join(", ") ?? "";
    element("messages").replaceChildren(...model.get(`messages:${id}`).items.map(line));
  };
  model.watch(`chat:${id}`, show);
  model.watch(`messages:${id}`, show);
  void model.openChat(id);
  element<HTMLFormElement>("composer").onsubmit = (event) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    model.send(id, String(new FormData(form).get("content")));
    form.reset();
  };
}

function line({ sender, content, delivery }: LocalMessage): HTMLElement {
  const item = document.createElement("li");
  const state = delivery === "sent" ? "" : ` (${delivery})`;
  item.textContent = `${sender.display_name}: ${content}${state}`;
  return item;
}
