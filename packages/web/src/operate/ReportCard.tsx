import type { Report } from "@parley/protocol";
import { useState } from "react";
import { describeError } from "../lib/errors.ts";
import { nameOf, ownerOf } from "../lib/names.ts";
import { operatePath } from "../lib/router.ts";
import { fullTime } from "../lib/time.ts";
import { Button } from "../ui/Button.tsx";
import { Icon } from "../ui/Icon.tsx";
import { Link } from "../ui/Link.tsx";
import { Notice } from "../ui/Notice.tsx";
import { ReportedMessages } from "./ReportedMessages.tsx";
import { ResolveReport } from "./ResolveReport.tsx";
import { Suspension, useSuspension } from "./Suspension.tsx";

interface ReportCardProps {
  report: Report;
  onChange: (report: Report) => void;
}

export function ReportCard({ report, onChange }: ReportCardProps) {
  const { reporter, at, reason, resolved_at } = report;
  return (
    <li className="rounded-lg border border-line bg-surface shadow-low">
      <header className="flex flex-col gap-1 border-b border-line px-4 py-3">
        <h3 className="text-base font-semibold break-words whitespace-pre-wrap" dir="auto">
          {reason}
        </h3>
        <p className="text-sm break-words text-ink-3">
          Reported by {nameOf(reporter)} <AccountLink username={reporter.username} /> on{" "}
          <time dateTime={at}>{fullTime(at)}</time>
        </p>
      </header>
      <ReportedMessages report={report} />
      <footer className="flex flex-col gap-2 border-t border-line px-4 py-3">
        {resolved_at === null ? (
          <Actions report={report} onChange={onChange} />
        ) : (
          <Result {...report} />
        )}
      </footer>
    </li>
  );
}

const AccountLink = ({ username }: { username: string }) => (
  <Link
    to={operatePath("accounts", { query: ownerOf(username) })}
    className="rounded-sm text-accent underline underline-offset-2"
  >
    @{username}
  </Link>
);

function Actions({ report, onChange }: ReportCardProps) {
  const { sender } = report.message;
  const username = ownerOf(sender.username);
  const [open, setOpen] = useState<"resolve" | "suspend" | null>(null);
  const suspension = useSuspension();
  const close = () => setOpen(null);
  return (
    <>
      <div className="flex flex-wrap gap-2">
        <Button size="small" look="primary" icon="check" onClick={() => setOpen("resolve")}>
          Resolve
        </Button>
        <Button
          size="small"
          look="danger"
          busy={suspension.busy}
          onClick={() => setOpen("suspend")}
        >
          Suspend @{username}
        </Button>
      </div>
      {suspension.error !== null && <Notice>{describeError(suspension.error)}</Notice>}
      {open === "resolve" && (
        <ResolveReport report={report} onClose={close} onResolved={onChange} />
      )}
      {open === "suspend" && (
        <Suspension
          name={sender.kind === "human" ? nameOf(sender) : `@${username}`}
          username={username}
          isSuspended={false}
          onClose={close}
          onConfirm={() => suspension.change(username, true)}
        />
      )}
    </>
  );
}

function Result({ resolved_at, resolved_by, note }: Report) {
  return (
    <div className="flex items-start gap-1.5 text-sm">
      <span className="mt-0.5 text-good">
        <Icon name="check" size={15} />
      </span>
      <div className="min-w-0 break-words">
        <p className="text-ink-2">
          Resolved by {whoOf(resolved_by)}
          {resolved_at && ` on ${fullTime(resolved_at)}`}
        </p>
        {note && (
          <p className="whitespace-pre-wrap" dir="auto">
            {note}
          </p>
        )}
      </div>
    </div>
  );
}

function whoOf(resolvedBy: string | null): string {
  const [, key] = /^service:(.+)$/.exec(resolvedBy ?? "") ?? [];
  return key ? `the service key «${key}»` : `@${resolvedBy}`;
}
