import { useEffect, useRef } from "react";

// The browser's «back» closes what lies on top of a page before it leaves the page. Every open layer
// (dialog, sheet, menu, details) has a history entry of its own, at the page's address; the entry's
// state says how many layers are open there.

interface Layer {
  close: () => void;
}

const open: Layer[] = [];
/** A step back that this file has asked for and that has not happened yet. */
let isStepping = false;
let isScheduled = false;
let afterStep: (() => void)[] = [];

const entries = (): number => history.state?.layers ?? 0;

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
      const at = open.indexOf(layer);
      if (at !== -1) open.splice(at, 1);
      schedule();
    };
  }, [isOpen]);
}

/** Runs once no entry of a layer is on top, so that a page never follows one in the history. */
export function withoutLayers(run: () => void): void {
  if (entries() === 0 && !isStepping) {
    run();
  } else {
    afterStep.push(run);
    step(-entries());
  }
}

/** Layers that close and open in the same moment need no step. */
function schedule(): void {
  if (isScheduled) return;
  isScheduled = true;
  queueMicrotask(() => {
    isScheduled = false;
    settle();
  });
}

/** Gives the history as many entries as there are layers. */
function settle(): void {
  if (isStepping) return;
  if (entries() > open.length) step(open.length - entries());
  while (entries() < open.length) history.pushState({ layers: entries() + 1 }, "");
}

function step(by: number): void {
  if (isStepping) return;
  isStepping = true;
  history.go(by);
}

function moved(): void {
  if (isStepping) {
    isStepping = false;
    const waiting = afterStep;
    afterStep = [];
    for (const run of waiting) run();
  } else {
    while (open.length > entries()) open.pop()?.close();
  }
  schedule();
}

addEventListener("popstate", moved);
// The layers of the page before a reload are gone, and their entries go too.
schedule();
