import { useChat, useUnread } from "@parley/client/react";
import { useEffect } from "react";
import { useSelf } from "../lib/me.ts";
import { chatTitle } from "../lib/names.ts";
import { operatePages, type Route, settingsPages } from "../lib/router.ts";
import { showCount } from "./favicon.ts";

const pages = {
  home: null,
  agents: "My agents",
  settings: "Settings",
  waiting: "Waiting for you",
  operate: "Operator pages",
  "reset-password": "New password",
  missing: "Not found",
};

/** Sets the title of the browser tab, the unread count and the current page, and shows the count on its icon. */
export function PageTitle({ route }: { route: Route }) {
  const me = useSelf();
  const chat = useChat(route.name === "chat" ? route.id : "");
  const { human, agent } = useUnread();
  const figure = human + agent;
  const place = route.name === "chat" ? chat && chatTitle(chat, me) : pageName(route);
  const unread = figure > 0 ? `(${figure > 99 ? "99+" : figure}) ` : "";
  const title = unread + (place ? `${place} · Parley` : "Parley");
  useEffect(() => {
    document.title = title;
  }, [title]);
  useEffect(() => {
    showCount(figure);
    return () => showCount(0);
  }, [figure]);
  return null;
}

function pageName(route: Exclude<Route, { name: "chat" }>): string | null {
  const name = pages[route.name];
  if (route.name === "settings") return `${settingsPages[route.page]} · ${name}`;
  return route.name === "operate" ? `${operatePages[route.page]} · ${name}` : name;
}
