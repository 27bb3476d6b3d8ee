import { type Client, createClient, indexedDbBlobs } from "@parley/client";
import type { OutputOf } from "@parley/protocol";
import { forgetAttachments } from "../files/attachments.ts";
import { codeOf, SUSPENDED, showError } from "../lib/errors.ts";
import { forgetNewGroups } from "../lib/new-groups.ts";
import { navigate } from "../lib/router.ts";
import { sharedValue } from "../lib/shared-value.ts";
import { askToConfirm } from "./confirmation.ts";
import { rememberDevice } from "./device.ts";

const KEY = "parley.token";
/** Set after a first sign-in: from then on the page begins with the sign-in form. */
const VISITED = "parley.visited";

/** Why the sign-in page is shown, or why a sign-in failed on another page; null if there is nothing to say. */
export const signInNotice = sharedValue<string | null>(null);

/** Creates the client of the page, with the token of the last sign-in. */
export function openClient(): Client {
  const token = localStorage.getItem(KEY);
  const client = createClient({
    url: location.origin,
    storage: localStorage,
    blobs: indexedDbBlobs(),
    confirm: askToConfirm,
    onError: showError,
    ...(token !== null && { token }),
  });
  /** The token of this tab. Another tab may have stored a different one, or removed it. */
  let own = token;
  const storeChange = () => {
    const ended = own;
    own = client.token;
    if (own === ended) return;
    if (ended !== null) {
      forgetAttachments();
      forgetNewGroups();
    }
    if (own !== null) return localStorage.setItem(KEY, own);
    if (localStorage.getItem(KEY) === ended) localStorage.removeItem(KEY);
    if (ended !== null && !isLeaving) void explainEnd(client, ended);
  };
  // Later, because a sign-in that replaces another one would otherwise sign out the other tabs.
  client.model.watch("status", () => queueMicrotask(storeChange));
  window.addEventListener("storage", ({ key, oldValue, newValue }) => {
    const isSignOut = key === KEY && newValue === null && oldValue === client.token;
    if (isSignOut) void leave(client);
  });
  // The status shows whether the connection could be made.
  if (token !== null) void client.connect().catch(() => {});
  return client;
}

/** Loads the page again when somebody signs in in another tab: it is signed in then. */
export function followSignIn(): () => void {
  const handleStorage = ({ key, newValue }: StorageEvent) => {
    if (key === KEY && newValue !== null) location.reload();
  };
  window.addEventListener("storage", handleStorage);
  return () => window.removeEventListener("storage", handleStorage);
}

/** Stores what this browser needs after the sign-in: at the next start, and at the next sign-in. */
export function rememberSignIn(entered: OutputOf<"signIn">): void {
  rememberDevice(entered);
  localStorage.setItem(VISITED, "1");
  signInNotice.set(null);
}

export const hasVisited = () => localStorage.getItem(VISITED) !== null;

let isLeaving = false;

/** What signing out would delete, while the person is asked about it; otherwise null. */
export const unsentAtSignOut = sharedValue<{ messages: number; drafts: number } | null>(null);

/** Signs out. If that deletes unsent messages or drafts, `ConfirmSignOut` asks first. */
export function signOut(client: Client): void {
  const { model, unsentCount: messages } = client;
  const drafts = model.get("chats").filter((id) => model.get(`draft:${id}`).trim() !== "").length;
  if (messages + drafts > 0) unsentAtSignOut.set({ messages, drafts });
  else void leave(client);
}

/** Signs out, and deletes what is unsent. */
export async function leave(client: Client): Promise<void> {
  unsentAtSignOut.set(null);
  isLeaving = true;
  await client.leave();
  // Whoever signs in next begins at the list.
  navigate("/", { replace: true });
  isLeaving = false;
}

/** Shows why a session has ended that the person did not end in this browser. */
async function explainEnd(client: Client, token: string): Promise<void> {
  const asker = createClient({ url: location.origin, token });
  const code = await asker.getMe().then(() => "", codeOf);
  if (client.status !== "signed_out" || signInNotice.get() !== null) return;
  if (code === "suspended") signInNotice.set(SUSPENDED);
  if (code === "unauthorized") signInNotice.set(ENDED);
}

const ENDED = "Your session was ended on another device, or it has expired. Please sign in again.";
