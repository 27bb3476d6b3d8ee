import { useSyncExternalStore } from "react";

export type Theme = "system" | "light" | "dark";

const KEY = "parley.theme";
const listeners = new Set<() => void>();

function theme(): Theme {
  const { theme: chosen } = document.documentElement.dataset;
  return chosen === "light" || chosen === "dark" ? chosen : "system";
}

export function setTheme(next: Theme): void {
  if (next === "system") {
    delete document.documentElement.dataset.theme;
    localStorage.removeItem(KEY);
  } else {
    document.documentElement.dataset.theme = next;
    localStorage.setItem(KEY, next);
  }
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export const useTheme = () => useSyncExternalStore(subscribe, theme);
