import type { LocalMessage } from "@parley/client";
import type { ToolCall } from "@parley/protocol";
import { lazy, Suspense } from "react";

const ToolCalls = lazy(() => import("./ToolCalls.tsx"));

interface MessageCallsProps {
  message: LocalMessage;
  calls: readonly ToolCall[];
}

/** Tool calls of a message. What shows them is loaded with the first message that has some. */
export function MessageCalls({ message, calls }: MessageCallsProps) {
  if (calls.length === 0) return null;
  return (
    <Suspense fallback={calls.map(({ id }) => <div key={id} className="h-7" />)}>
      <ToolCalls message={message} calls={calls} />
    </Suspense>
  );
}
