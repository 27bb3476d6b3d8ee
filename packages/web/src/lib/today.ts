import { useSyncExternalStore } from "react";
import { dayAround } from "./time.ts";

/** The start of the current day in milliseconds. The component renders again when the day changes. */
export const useToday = (): number => useSyncExternalStore(watchToday, startOfToday, startOfToday);

const startOfToday = () => dayAround(Date.now()).from;

function watchToday(onChange: () => void): () => void {
  let timer: ReturnType<typeof setTimeout>;
  const waitForTomorrow = () => {
    timer = setTimeout(check, dayAround(Date.now()).to - Date.now());
  };
  const check = () => {
    clearTimeout(timer);
    onChange();
    waitForTomorrow();
  };
  waitForTomorrow();
  // Timers may stop while the device sleeps.
  document.addEventListener("visibilitychange", check);
  return () => {
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", check);
  };
}
