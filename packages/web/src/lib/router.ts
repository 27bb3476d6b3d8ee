import { useSyncExternalStore } from "react";
import { goTo } from "./back.ts";
import { providerOf } from "./names.ts";

export type Route =
  | { name: "home" }
  /** `message` is the one to scroll to, as from a search; `details` opens the details. */
  | { name: "chat"; id: string; message: string | null; details: boolean }
  /** `target` is the field to focus, as from an error that it solves. */
  | { name: "agents"; target: AgentTarget | null }
  | { name: "settings"; page: SettingsPageName }
  /** What waits for the person's decision. */
  | { name: "waiting" }
  /** `filter` selects what a list shows. */
  | { name: "operate"; page: OperatePageName; filter: URLSearchParams }
  /** The page of a reset link. */
  | { name: "reset-password"; token: string }
  /** An unknown address. */
  | { name: "missing" };

const agentFields = [
  "key",
  "model",
  "daily_tokens",
  "chat_daily_tokens",
  "turns_per_minute",
] as const;
export type AgentField = (typeof agentFields)[number];

/** A field of an agent's card. */
export interface AgentTarget {
  field: AgentField;
  name: string;
}

/** The names of the pages, by the last part of their paths. */
export const settingsPages = {
  you: "You",
  security: "Security",
  notifications: "Notifications",
  "tool-servers": "Tool servers",
  data: "Your data",
} as const;
export type SettingsPageName = keyof typeof settingsPages;

export const operatePages = {
  state: "Service",
  accounts: "Accounts",
  reports: "Reports",
  audit: "Audit log",
} as const;
export type OperatePageName = keyof typeof operatePages;

export const namesOf = <Name extends string>(pages: Record<Name, unknown>) =>
  Object.keys(pages) as Name[];

function parseRoute(address: string, hash: string): Route {
  const path = address.replace(/\/+$/, "");
  const [, chat] = /^\/c\/([\w-]+)$/.exec(path) ?? [];
  if (chat) {
    const details = hash === `#${DETAILS}`;
    return { name: "chat", id: chat, message: details ? null : hash.slice(1) || null, details };
  }
  if (path === "/agents") return { name: "agents", target: parseTarget(hash) };
  if (/^\/settings\b/.test(path)) return parseSettings(path);
  if (path === "/reset-password") return { name: "reset-password", token: hash.slice(1) };
  if (path === "/waiting") return { name: "waiting" };
  if (/^\/operate\b/.test(path)) return parseOperate(path, hash);
  return { name: path === "" ? "home" : "missing" };
}

function parseSettings(path: string): Route {
  const page = namesOf(settingsPages).find((each) => settingsPath(each) === path);
  return page ? { name: "settings", page } : { name: "missing" };
}

/** The path of a page of the settings. */
export const settingsPath = (page: SettingsPageName = "you") =>
  page === "you" ? "/settings" : `/settings/${page}`;

/** The filter is in the hash, so that the names in it do not reach the logs of servers. */
function parseOperate(path: string, hash: string): Route {
  const page = namesOf(operatePages).find((each) => operatePath(each) === path);
  if (!page) return { name: "missing" };
  return { name: "operate", page, filter: new URLSearchParams(hash.slice(1)) };
}

/** The path of a page of operators. Empty values are left out of the filter. */
export function operatePath(page: OperatePageName, filter: Record<string, string> = {}): string {
  const path = page === "state" ? "/operate" : `/operate/${page}`;
  const given = Object.entries(filter).filter(([, value]) => value !== "");
  return given.length === 0 ? path : `${path}#${new URLSearchParams(given)}`;
}

function parseTarget(hash: string): AgentTarget | null {
  const [, id, name] = /^#(\w+)-(.+)$/.exec(hash) ?? [];
  const field = agentFields.find((each) => each === id);
  return name && field ? { field, name } : null;
}

/** The path of an agent's key, its model, or one of its limits. */
export const agentPath = (username: string, field: AgentField) =>
  `/agents#${field}-${providerOf(username)}`;

/** In place of the id of a message, it opens the details of the conversation. */
export const DETAILS = "details";

export const chatPath = (id: string, message?: string) =>
  message === undefined ? `/c/${id}` : `/c/${id}#${message}`;

const MOVED = "parley:moved";

export function navigate(path: string, { replace = false } = {}): void {
  const isHere = path === location.pathname + location.hash;
  if (isHere && location.hash === "") return;
  goTo(path, { replace: replace || isHere });
  // Navigating to the same message again scrolls to it again.
  if (isHere) current.key = "";
  dispatchEvent(new Event(MOVED));
}

/** Goes home if the conversation is the open one, because the person has left it. */
export function closeChat(id: string): void {
  if (location.pathname === chatPath(id)) navigate("/", { replace: true });
}

let current = { key: "", route: { name: "home" } as Route };

function snapshot(): Route {
  const key = location.pathname + location.hash;
  if (key !== current.key) current = { key, route: parseRoute(location.pathname, location.hash) };
  return current.route;
}

function subscribe(listener: () => void): () => void {
  for (const event of [MOVED, "popstate", "hashchange"]) addEventListener(event, listener);
  return () => {
    for (const event of [MOVED, "popstate", "hashchange"]) removeEventListener(event, listener);
  };
}

export const useRoute = () => useSyncExternalStore(subscribe, snapshot);
