import type { ToolServer } from "@parley/protocol";
import { Icon } from "../ui/Icon.tsx";
import { visibleText } from "./visible-text.ts";

const states = {
  ready: { text: "Ready", colour: "text-good", icon: "check" },
  unreachable: { text: "Cannot be reached", colour: "text-danger", icon: "alert" },
  unauthorized: { text: "Needs a sign-in or another token", colour: "text-warn", icon: "key" },
} as const;

/** How the last contact with a tool server ended, and who can mend it. */
export function ServerStatus({ server: { status, error, operator } }: { server: ToolServer }) {
  const { text, colour, icon } = states[status];
  return (
    <p role="status" className={`flex items-start gap-1.5 text-sm ${colour}`}>
      <span className="mt-0.5">
        <Icon name={icon} size={15} />
      </span>
      <span className="min-w-0 break-words">
        {text}
        {error && <span className="text-ink-2">: {visibleText(error)}</span>}
        {operator && status !== "ready" && (
          <span className="text-ink-2"> Please tell the people who run this service.</span>
        )}
      </span>
    </p>
  );
}
