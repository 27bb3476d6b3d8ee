import type { LocalMessage } from "@parley/client";
import { useClient, useMessages } from "@parley/client/react";
import type { ReactNode } from "react";
import { showError } from "../../lib/errors.ts";
import { count } from "../../lib/names.ts";
import { toast } from "../../lib/toasts.ts";
import { useChatContext } from "../context.ts";

interface SendButtonProps {
  edit: boolean;
  /** There is nothing to send. */
  empty: boolean;
  disabled: boolean;
}

/** The send button. While an agent answers, Stop replaces it, or stands beside it if there is text. */
export function SendButton({ edit, empty, disabled }: SendButtonProps) {
  const stop = useStop();
  const label = edit ? "Save" : "Send";
  return (
    <>
      {stop && !edit && <StopButton {...stop} />}
      {!(stop && empty && !edit) && (
        <ComposerButton type="submit" label={label} disabled={disabled} look={SEND_LOOK}>
          <SendGlyph edit={edit} />
        </ComposerButton>
      )}
    </>
  );
}

const SEND_LOOK =
  "bg-accent-fill text-on-accent hover:bg-accent-press disabled:bg-sunken disabled:text-ink-3";

interface Stop {
  label: string;
  onStop: () => void;
}

function StopButton({ label, onStop }: Stop) {
  return (
    <ComposerButton
      type="button"
      label={label}
      onClick={onStop}
      look="bg-ink text-canvas hover:bg-ink-2"
    >
      <StopGlyph />
    </ComposerButton>
  );
}

/** How to stop the answers that stream here; null if there are none. */
function useStop(): Stop | null {
  const { chat } = useChatContext();
  const client = useClient();
  const { items } = useMessages(chat.id);
  const running = items.slice(-RECENT_MESSAGES).filter(isStreaming);
  const [first] = running;
  if (!first) return null;
  if (chat.kind === "direct") {
    return {
      label: "Stop",
      onStop: () => void client.stopAgentTurn({ message_id: first.id }).catch(showError),
    };
  }
  return {
    label: "Stop agents",
    onStop: () =>
      void client
        .stopChatAgents({ chat_id: chat.id })
        .then(({ stopped }) => toast(`Stopped ${count(stopped, "answer")}.`), showError),
  };
}

/** Streaming answers are among the latest messages; searching only those is cheap. */
const RECENT_MESSAGES = 50;

const isStreaming = ({ finalized_at, turn }: LocalMessage) => turn !== null && !finalized_at;

interface ComposerButtonProps {
  type: "submit" | "button";
  label: string;
  look: string;
  disabled?: boolean;
  onClick?: () => void;
  children: ReactNode;
}

function ComposerButton({ label, look, children, ...rest }: ComposerButtonProps) {
  return (
    <button
      {...rest}
      aria-label={label}
      title={label}
      // Keeps the focus in the field, and with it the keyboard of a phone.
      onMouseDown={(event) => event.preventDefault()}
      className={`inline-flex size-10 shrink-0 items-center justify-center rounded-md transition-colors ${look}`}
    >
      {children}
    </button>
  );
}

function SendGlyph({ edit }: { edit: boolean }) {
  return (
    <svg
      aria-hidden="true"
      width="19"
      height="19"
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth="2"
      strokeLinecap="round"
      strokeLinejoin="round"
    >
      <path d={edit ? "M5 12.5l4.5 4.5L19 7.5" : "M12 19V5M6 11l6-6 6 6"} />
    </svg>
  );
}

function StopGlyph() {
  return (
    <svg aria-hidden="true" width="14" height="14" viewBox="0 0 14 14" fill="currentColor">
      <rect width="14" height="14" rx="3" />
    </svg>
  );
}
