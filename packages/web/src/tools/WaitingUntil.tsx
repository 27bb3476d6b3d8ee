import { clockTime, fullTime } from "../lib/time.ts";

/** «waiting for you until 12:30». */
export const WaitingUntil = ({ at }: { at: string }) => (
  <>
    waiting for you until{" "}
    <time dateTime={at} title={fullTime(at)}>
      {clockTime(at)}
    </time>
  </>
);
