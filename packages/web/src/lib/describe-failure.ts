import { formatSize } from "../files/describe.ts";
import { count } from "./names.ts";

const HOUR_S = 3600;

/** Why a message was not sent, without the name of the error code and in units for people. */
export const describeFailure = (failure: string) =>
  failure
    .replace(/\b(?:unsupported media type|payload too large|rate limited): /, "")
    .replace(/\b(\d{4,}) bytes\b/g, (_, bytes) => formatSize(Number(bytes)))
    .replace(
      /\bin (\d{4,}) s$/,
      (_, seconds) => `in ${count(Math.ceil(seconds / HOUR_S), "hour")}`,
    );
