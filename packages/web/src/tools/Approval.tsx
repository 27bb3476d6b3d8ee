import type { Account, ToolCall, ToolCallDetail } from "@parley/protocol";
import {
  type KeyboardEvent,
  type ReactNode,
  type Ref,
  useLayoutEffect,
  useRef,
  useState,
} from "react";
import { describeError } from "../lib/errors.ts";
import type { Fetching } from "../lib/fetched.ts";
import { focusOnMount } from "../lib/focus.ts";
import { useSelf } from "../lib/me.ts";
import { isMyAgent, nameOf } from "../lib/names.ts";
import { fullTime, timeUntil } from "../lib/time.ts";
import { Button } from "../ui/Button.tsx";
import { Icon } from "../ui/Icon.tsx";
import { Notice } from "../ui/Notice.tsx";
import { Unfetched } from "../ui/Unfetched.tsx";
import { Arguments } from "./Arguments.tsx";
import { callTitle } from "./calls.ts";
import type { useDecision } from "./decision.ts";
import { usePayer } from "./payer.ts";
import { useTakenTool } from "./taken-tool.ts";
import { visibleText } from "./visible-text.ts";

interface ApprovalProps {
  agent: Account;
  /** The name of the agent's owner; «you» for oneself. */
  owner: string;
  call: ToolCall;
  detail: ToolCallDetail | undefined;
  /** Left out if the detail is known. */
  fetching?: Fetching;
  decision: ReturnType<typeof useDecision>;
  /** Where the call comes from. */
  context?: ReactNode;
  ref?: Ref<HTMLDivElement>;
}

/** A tool call that waits for approval: what it would do, and for the owner the decision. */
export function Approval(props: ApprovalProps) {
  const { agent, owner, call, detail, fetching, decision, context, ref } = props;
  const me = useSelf();
  const isOwner = isMyAgent(agent, me);
  const isOver = isPast(detail?.expires_at);
  const [note, setNote] = useState<string | null>(null);
  const decide = (choice: "approve" | "reject") =>
    void decision.decide(choice, (note ?? "").trim());
  const canDecide = isOwner && !isOver && detail !== undefined;
  const taken = useTakenTool(agent, call);
  const refusal = taken ?? decision.refusal;
  return (
    // biome-ignore lint/a11y/useSemanticElements: it is no group of fields
    <div
      role="group"
      ref={ref}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: it has keys of its own
      tabIndex={0}
      aria-label={`${nameOf(agent)} asks to use ${callTitle(call)}`}
      aria-keyshortcuts={canDecide ? (refusal === null ? "a r" : "r") : undefined}
      onKeyDown={(event) => canDecide && decideByKey(event, refusal !== null, decide)}
      className="my-1 flex w-full max-w-xl flex-col gap-3 rounded-lg border border-line bg-surface p-4 text-base text-ink shadow-low focus-visible:outline-offset-0"
    >
      {context}
      <Question agent={agent} call={call} />
      {detail && <Arguments values={detail.arguments} />}
      {!detail && fetching && <Unfetched fetched={fetching} className="h-16" />}
      <Terms agent={agent} owner={owner} detail={detail} />
      {isOwner && note !== null && <NoteField value={note} onChange={setNote} />}
      {canDecide && (
        <Decisions decision={decision} refusal={refusal} onDecide={decide}>
          {note === null && (
            <Button size="small" look="quiet" onClick={() => setNote("")}>
              Add a note
            </Button>
          )}
        </Decisions>
      )}
      {!isOwner && !isOver && (
        <p className="flex items-center gap-1.5 text-sm font-medium text-ink-2">
          <Icon name="clock" size={15} /> Waits for {owner}
        </p>
      )}
      {decision.error !== null && <Notice>{describeError(decision.error)}</Notice>}
    </div>
  );
}

const isPast = (at: string | null | undefined) =>
  at !== null && at !== undefined && Date.parse(at) <= Date.now();

/** `a` approves and `r` rejects, unless it is text that is typed into a field. */
function decideByKey(
  event: KeyboardEvent,
  isOnlyRejected: boolean,
  decide: (choice: "approve" | "reject") => void,
): void {
  const { key, ctrlKey, metaKey, altKey, repeat, target } = event;
  if (ctrlKey || metaKey || altKey || repeat || target instanceof HTMLTextAreaElement) return;
  const choice = ({ a: "approve", r: "reject" } as const)[key.toLowerCase()];
  if (!choice) return;
  event.preventDefault();
  // Otherwise the letter would be typed into the composer.
  event.stopPropagation();
  if (choice === "reject" || !isOnlyRejected) decide(choice);
}

function Question({ agent, call }: { agent: Account; call: ToolCall }) {
  return (
    <div className="flex items-start gap-3">
      <span className="mt-0.5 inline-flex size-8 shrink-0 items-center justify-center rounded-md bg-warn-soft text-warn">
        <Icon name="tool" size={17} />
      </span>
      <div className="min-w-0">
        <p className="text-md leading-5 break-words">
          {nameOf(agent)} asks to use <span className="font-semibold">{callTitle(call)}</span>
        </p>
        <p className="mt-0.5 text-sm break-all text-ink-3">
          {visibleText(call.server)} ·{" "}
          <span className="font-mono text-xs">{visibleText(call.tool)}</span>
        </p>
      </div>
    </div>
  );
}

interface TermsProps {
  agent: Account;
  owner: string;
  detail: ToolCallDetail | undefined;
}

/** In whose name it runs, who pays for what follows, and until when it can be decided. */
function Terms({ agent, owner, detail }: TermsProps) {
  const payer = usePayer(agent, owner);
  const expires = detail?.expires_at;
  return (
    <p className="text-sm text-ink-3">
      It runs with {owner === "you" ? "your" : `${owner}’s`} access. {payer}
      {expires && (
        <>
          {" "}
          <time dateTime={expires} title={fullTime(expires)}>
            {isPast(expires) ? "It has expired." : `Expires ${timeUntil(expires)}.`}
          </time>
        </>
      )}
    </p>
  );
}

function NoteField({ value, onChange }: { value: string; onChange: (note: string) => void }) {
  return (
    <textarea
      aria-label="Note for the agent"
      placeholder="A note for the agent, shown with the call"
      value={value}
      maxLength={1000}
      rows={2}
      // The person just asked for it.
      ref={focusOnMount}
      onChange={(event) => onChange(event.target.value)}
      className="field resize-y"
    />
  );
}

interface DecisionsProps {
  decision: ReturnType<typeof useDecision>;
  /** Why the call can only be rejected; null if it can be approved. */
  refusal: string | null;
  onDecide: (choice: "approve" | "reject") => void;
  children: ReactNode;
}

function Decisions({ decision, refusal, onDecide, children }: DecisionsProps) {
  const reject = useRef<HTMLButtonElement>(null);
  const known = useRef(decision.refusal);
  // The button «Approve» disappears when the server has refused an approval.
  useLayoutEffect(() => {
    const isNew = known.current !== decision.refusal;
    known.current = decision.refusal;
    if (isNew && document.activeElement === document.body) reject.current?.focus();
  }, [decision.refusal]);
  const approve = () => onDecide("approve");
  return (
    <>
      <p role="status" className="flex items-start gap-1.5 text-sm text-warn empty:hidden">
        {refusal !== null && (
          <>
            <span className="mt-0.5">
              <Icon name="alert" size={15} />
            </span>
            {refusal}.
          </>
        )}
      </p>
      <div className="flex flex-wrap items-center gap-2">
        {refusal === null && (
          <DecisionButton look="primary" letter="A" decision={decision} onClick={approve}>
            Approve
          </DecisionButton>
        )}
        <DecisionButton
          ref={reject}
          look="secondary"
          letter="R"
          decision={decision}
          onClick={() => onDecide("reject")}
        >
          Reject
        </DecisionButton>
        {children}
      </div>
    </>
  );
}

interface DecisionButtonProps {
  ref?: Ref<HTMLButtonElement>;
  look: "primary" | "secondary";
  /** The key that does the same. */
  letter: string;
  decision: ReturnType<typeof useDecision>;
  onClick: () => void;
  children: string;
}

function DecisionButton({ ref, look, letter, decision, onClick, children }: DecisionButtonProps) {
  return (
    <Button
      {...(ref && { ref })}
      size="small"
      look={look}
      busy={decision.busy}
      onClick={onClick}
      className="pointer-coarse:h-11 pointer-coarse:px-4"
    >
      {children}
      <span
        aria-hidden="true"
        className="ml-0.5 rounded-xs border border-current px-1 font-sans text-2xs leading-4 opacity-70 pointer-coarse:hidden"
      >
        {letter}
      </span>
    </Button>
  );
}
