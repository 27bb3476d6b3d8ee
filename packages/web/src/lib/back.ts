import { useEffect, useRef } from "react";

// The browser's «back» closes the topmost layer (dialog, sheet, menu, details) before it leaves the
// page. A layer that opens adds a history entry with the address of the page. A layer that is closed in
// another way leaves its entry behind: the next layer or page reuses the entry, and «back» skips it.
// Removing the entry at once would need `history.back()`, which could undo a navigation of the person.

/** The state of a history entry. */
interface Entry {
  /** Increases from entry to entry, to tell back from forward. */
  at: number;
  /** Number of open layers. */
  layers: number;
}

interface Layer {
  close: () => void;
}

const openLayers: Layer[] = [];
let isScheduled = false;
const currentEntry = (): Entry => history.state ?? { at: 0, layers: 0 };
let last = currentEntry();

/** Calls `close` on «back» while the layer is open. */
export function useBackCloses(close: () => void, isOpen = true): void {
  const latest = useRef(close);
  latest.current = close;
  useEffect(() => {
    if (!isOpen) return;
    const layer: Layer = { close: () => latest.current() };
    openLayers.push(layer);
    scheduleEntries();
    return () => {
      const index = openLayers.indexOf(layer);
      if (index !== -1) openLayers.splice(index, 1);
    };
  }, [isOpen]);
}

/** Changes the address. Replaces the entry of a layer, which belongs to the page that is left. */
export function goTo(path: string, { replace }: { replace: boolean }): void {
  const { at, layers } = currentEntry();
  if (replace || layers > 0) history.replaceState({ at, layers: 0 }, "", path);
  else history.pushState({ at: at + 1, layers: 0 }, "", path);
  last = currentEntry();
  scheduleEntries();
}

/** Adds entries after the layers that close now have closed, so that their entries are reused. */
function scheduleEntries(): void {
  if (isScheduled) return;
  isScheduled = true;
  setTimeout(() => {
    isScheduled = false;
    addEntries();
  });
}

function addEntries(): void {
  for (let { at, layers } = currentEntry(); layers < openLayers.length; ) {
    history.pushState({ at: ++at, layers: ++layers }, "");
  }
  last = currentEntry();
}

function handlePopState(): void {
  const from = last;
  last = currentEntry();
  const isBack = history.state !== null && last.at < from.at;
  if (openLayers.length > last.layers) {
    while (openLayers.length > last.layers) openLayers.pop()?.close();
  } else if (isBack && from.layers > 0) {
    history.back();
  }
}

addEventListener("popstate", handlePopState);
