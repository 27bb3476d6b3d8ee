import { fullTime } from "../../lib/time.ts";

/** Marks a message that was edited, where no line with its time does. */
export const Edited = ({ at }: { at: string }) => (
  <time dateTime={at} title={fullTime(at)} className="text-xs text-ink-3">
    edited
  </time>
);
