import { useEffect, useRef } from "react";

// The browser's «back» closes what lies on top of a page before it leaves the page. A layer (dialog,
// sheet, menu, details) that opens adds a history entry at the page's address. A layer that is closed
// in another way leaves its entry behind: the next layer, or the next page, takes its place, and
// «back» passes over it. So nothing here goes back by itself while the person does something else.

interface Place {
  /** Grows from entry to entry, which tells back from forward. */
  at: number;
  /** How many layers were open when the entry was made. */
  layers: number;
}

interface Layer {
  close: () => void;
}

const open: Layer[] = [];
let isScheduled = false;
const place = (): Place => history.state ?? { at: 0, layers: 0 };
let last = place();

/** Calls `close` when the person goes back while the layer is open. */
export function useBackCloses(close: () => void, isOpen = true): void {
  const latest = useRef(close);
  latest.current = close;
  useEffect(() => {
    if (!isOpen) return;
    const layer: Layer = { close: () => latest.current() };
    open.push(layer);
    schedule();
    return () => {
      const index = open.indexOf(layer);
      if (index !== -1) open.splice(index, 1);
    };
  }, [isOpen]);
}

/** Goes to another address; over the entries of layers, which belong to the page that is left. */
export function goTo(path: string, { replace }: { replace: boolean }): void {
  const { at, layers } = place();
  if (replace || layers > 0) history.replaceState({ at, layers: 0 }, "", path);
  else history.pushState({ at: at + 1, layers: 0 }, "", path);
  last = place();
  schedule();
}

/** Later, when layers that close have closed: those which open in their place share their entry. */
function schedule(): void {
  if (isScheduled) return;
  isScheduled = true;
  setTimeout(() => {
    isScheduled = false;
    addEntries();
  });
}

function addEntries(): void {
  for (let { at, layers } = place(); layers < open.length; ) {
    history.pushState({ at: ++at, layers: ++layers }, "");
  }
  last = place();
}

function moved(): void {
  const from = last;
  last = place();
  const isBack = history.state !== null && last.at < from.at;
  if (open.length > last.layers) {
    while (open.length > last.layers) open.pop()?.close();
  } else if (isBack && from.layers > 0) {
    history.back();
  }
}

addEventListener("popstate", moved);
