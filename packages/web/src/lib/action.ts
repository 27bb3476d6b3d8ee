import type { CallError } from "@parley/client";
import { useCallback, useRef, useState } from "react";
import { toast } from "../ui/Toasts.tsx";
import { connectionWords } from "./connection.ts";
import type { FieldErrors } from "./validity.ts";

/** What went wrong, in words a person can read. */
export function wordsFor(error: unknown): string {
  if (!(error instanceof Error)) return "Something went wrong.";
  const { code, retryAfter } = error as Partial<CallError>;
  if (code === "rate_limited") {
    const [, what = "too many attempts"] =
      /^rate limited: (.+), try again/.exec(error.message) ?? [];
    return `${sentence(what)}. Try again ${inSeconds(retryAfter)}.`;
  }
  if (code === "unavailable" && retryAfter === undefined) return noConnection();
  const fields = Object.entries((error as Partial<CallError>).fields ?? {});
  if (fields.length > 0) return fields.map(([name, text]) => `${nice(name)} ${text}`).join("; ");
  return sentence(error.message);
}

/** What the service says about the fields of a call, by name. */
export function fieldErrorsOf(error: unknown): FieldErrors {
  const fields = error instanceof Error ? (error as Partial<CallError>).fields : undefined;
  return Object.fromEntries(
    // «must have at least 8 characters»: the field is the subject.
    Object.entries(fields ?? {}).map(([name, text]) => [name, `It ${text}.`]),
  );
}

const noConnection = () => connectionWords[navigator.onLine ? "unreachable" : "offline"];

const inSeconds = (seconds = 0) =>
  seconds < 2
    ? "in a moment"
    : seconds < 90
      ? `in ${seconds} seconds`
      : `in ${Math.ceil(seconds / 60)} minutes`;

export const codeOf = (error: unknown) =>
  error instanceof Error ? ((error as Partial<CallError>).code ?? "") : "";

const nice = (name: string) => sentence(name.replaceAll("_", " "));
const sentence = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

/** Tells of a failure in passing; for what is done with one press. */
export const complain = (error: unknown) => toast(wordsFor(error), "danger");

interface Action {
  busy: boolean;
  error: unknown;
  run: (work: () => Promise<unknown>) => Promise<boolean>;
}

/** Something a person started: whether it is under way, and how it failed. One at a time. */
export function useAction(): Action {
  const [state, setState] = useState<{ busy: boolean; error: unknown }>({
    busy: false,
    error: null,
  });
  const running = useRef(false);
  const run = useCallback(async (work: () => Promise<unknown>) => {
    if (running.current) return false;
    running.current = true;
    setState({ busy: true, error: null });
    try {
      await work();
      setState({ busy: false, error: null });
      return true;
    } catch (error) {
      setState({ busy: false, error });
      return false;
    } finally {
      running.current = false;
    }
  }, []);
  return { ...state, run };
}
