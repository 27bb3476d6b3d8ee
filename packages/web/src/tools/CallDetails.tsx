import type { ToolCall, ToolCallDetail } from "@parley/protocol";
import type { ReactNode } from "react";
import type { Fetching } from "../lib/fetched.ts";
import { Unfetched } from "../ui/Unfetched.tsx";
import { Arguments, Output } from "./Arguments.tsx";
import { visibleText } from "./visible-text.ts";

interface CallDetailsProps {
  call: ToolCall;
  detail: ToolCallDetail | undefined;
  fetching: Fetching;
}

/** What a tool was called with, and for the owner of the agent what it returned. */
export function CallDetails({ call, detail, fetching }: CallDetailsProps) {
  if (!detail) return <Unfetched fetched={fetching} className="h-16" />;
  const { arguments: values, result, error, note } = detail;
  return (
    <div className="flex flex-col gap-2">
      <Part title={visibleText(call.tool)}>
        <Arguments values={values} />
      </Part>
      {note && (
        <Part title="Note">
          <p className="text-sm break-words whitespace-pre-wrap">{visibleText(note)}</p>
        </Part>
      )}
      {result !== null && (
        <Part title="Result">
          <Output label="Result" text={result} />
        </Part>
      )}
      {error !== null && (
        <Part title="Error">
          <Output label="Error" text={describeCallError(error)} />
        </Part>
      )}
    </div>
  );
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div className="flex flex-col gap-1">
      <p className="text-xs font-medium break-words text-ink-3">{title}</p>
      {children}
    </div>
  );
}

const describeCallError = (error: string) =>
  error === "interrupted"
    ? "The server stopped while the call was made. It is not known whether it was carried out."
    : error;
