import type { LocalMessage } from "@parley/client";
import { useClient, useMessages } from "@parley/client/react";
import { acceptableCopies, copiesOf, rememberCopies } from "../../files/local-copies.ts";
import { charactersLeft } from "../../lib/content-limit.ts";
import { copyText } from "../../lib/copy.ts";
import { describeRefusal, lacksReplyTarget } from "../../lib/describe-failure.ts";
import { showError } from "../../lib/errors.ts";
import { useSelf } from "../../lib/me.ts";
import { count } from "../../lib/names.ts";
import { clockTime, fullTime } from "../../lib/time.ts";
import { toast } from "../../lib/toasts.ts";
import { Icon } from "../../ui/Icon.tsx";
import { useChatContext } from "../context.ts";
import { joinedAt } from "../group-changes.ts";
import { Problem, ProblemButton } from "../Problem.tsx";
import { useShortName } from "../sender-names.ts";
import { Edited } from "./Edited.tsx";

interface DeliveryProps {
  message: LocalMessage;
  /** The message ends a run of messages by one sender. */
  last: boolean;
  isLastOwn: boolean;
}

/** The state of one's own message: sending, sent, seen or failed. */
export function Delivery({ message, last, isLastOwn }: DeliveryProps) {
  const { delivery, client_msg_id, created_at, edited_at } = message;
  if (delivery === "failed" && client_msg_id) {
    return <NotSent message={message} clientMsgId={client_msg_id} />;
  }
  const isSending = delivery === "sending";
  const isUpload = isSending && message.files.length > 0;
  if (!last && !isLastOwn && !isUpload) return edited_at && <Edited at={edited_at} />;
  return (
    <p className="flex max-w-full items-center gap-1 text-xs whitespace-nowrap text-ink-3">
      {edited_at && "edited · "}
      <time dateTime={created_at} title={fullTime(created_at)}>
        {clockTime(created_at)}
      </time>
      {isSending ? (
        <span className="inline-flex items-center gap-1">
          · <Icon name="clock" size={12} /> Sending
          {isUpload && client_msg_id && <CancelButton clientMsgId={client_msg_id} />}
        </span>
      ) : (
        isLastOwn && <Seen message={message} />
      )}
    </p>
  );
}

/** Drops a message whose files are being uploaded. */
function CancelButton({ clientMsgId }: { clientMsgId: string }) {
  const { model } = useClient();
  return <ProblemButton onClick={() => model.discard(clientMsgId)}>Cancel</ProblemButton>;
}

interface NotSentProps {
  message: LocalMessage;
  clientMsgId: string;
}

/**
 * A message that could not be sent: it can be sent again, edited, copied or discarded. If a file of it
 * is refused for good, editing leaves the file out and keeps what else there is. If the message that it
 * answers was deleted, sending it again leaves the reference out.
 */
function NotSent({ message, clientMsgId }: NotSentProps) {
  const { chat, isReadOnly, onReturnToComposer } = useChatContext();
  const { model } = useClient();
  const { content, files, isRejected = false } = message;
  const isTooLong = (charactersLeft(content) ?? 0) < 0;
  const isReplyToDeleted = lacksReplyTarget(message);
  const reason = isTooLong
    ? "it is too long"
    : isReplyToDeleted
      ? "the message that it answers was deleted"
      : describeRefusal(message);
  // After a reload, the page no longer has the files that it would return to the composer.
  const canReturn = files.length === 0 || copiesOf(clientMsgId).length > 0;
  const isWorthEditing = !isRejected || content !== "" || acceptableCopies(message).length > 0;
  const sendAsNew = () => {
    const copies = copiesOf(clientMsgId);
    model.discard(clientMsgId);
    rememberCopies(model.send(chat.id, content, { files: copies.map(({ file }) => file) }), copies);
  };
  const copy = () => copyText(content).then(() => toast("Copied."), showError);
  return (
    <Problem
      isAtEnd
      actions={
        <>
          {isReplyToDeleted && canReturn && !isReadOnly && (
            <ProblemButton onClick={sendAsNew}>Send as a new message</ProblemButton>
          )}
          {!isReplyToDeleted && !isTooLong && !isReadOnly && !isRejected && (
            <ProblemButton onClick={() => model.retry(clientMsgId)}>Try again</ProblemButton>
          )}
          {canReturn && isWorthEditing && !isReadOnly && (
            <ProblemButton onClick={() => onReturnToComposer(message)}>Edit</ProblemButton>
          )}
          {content !== "" && <ProblemButton onClick={copy}>Copy</ProblemButton>}
          <ProblemButton onClick={() => model.discard(clientMsgId)}>Discard</ProblemButton>
        </>
      }
    >
      {reason === undefined ? "Not sent." : `Not sent: ${reason}.`}
    </Problem>
  );
}

function Seen({ message }: { message: LocalMessage }) {
  const { chat } = useChatContext();
  const shortName = useShortName();
  const me = useSelf();
  const { changes } = useMessages(chat.id);
  const readers = chat.participants.filter(
    ({ kind, username }) =>
      kind === "human" &&
      username !== me.username &&
      (chat.reads[username] ?? 0) >= message.seq &&
      // The server counts earlier messages as read for new members, who may never have seen them.
      joinedAt(changes, username) < message.seq,
  );
  if (readers.length === 0) {
    return (
      <span className="inline-flex items-center gap-0.5">
        · <Icon name="check" size={12} /> Sent
      </span>
    );
  }
  const names = readers.map(shortName);
  if (chat.kind === "direct") return <span>· Seen</span>;
  return (
    <span title={readers.map(({ display_name }) => display_name).join(", ")} className="truncate">
      · Seen by {names.length <= 4 ? names.join(", ") : count(names.length, "person", "people")}
    </span>
  );
}
