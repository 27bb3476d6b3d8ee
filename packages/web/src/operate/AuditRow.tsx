import type { AuditEntry } from "@parley/protocol";
import { deviceName } from "../lib/devices.ts";
import { operatePath } from "../lib/router.ts";
import { clockTime, fullTime } from "../lib/time.ts";
import { Icon } from "../ui/Icon.tsx";
import { Link } from "../ui/Link.tsx";
import { auditSentence, isRefusal } from "./audit-sentences.ts";

export function AuditRow({ entry }: { entry: AuditEntry }) {
  const { at, action, address, user_agent } = entry;
  const origin = [address, user_agent === null ? null : deviceName(user_agent)].filter(Boolean);
  return (
    <li className="flex gap-3 py-2.5">
      <time
        dateTime={at}
        title={fullTime(at)}
        className="w-16 shrink-0 text-sm leading-[1.375rem] text-ink-3 tabular-nums"
      >
        {clockTime(at)}
      </time>
      <div className="min-w-0 flex-1">
        <p className="flex items-start gap-1.5 text-base">
          {isRefusal(action) && (
            <span className="mt-1 text-warn">
              <Icon name="alert" size={15} />
            </span>
          )}
          <span className="min-w-0 break-words">
            <WithLinks text={auditSentence(entry)} />
          </span>
        </p>
        {origin.length > 0 && (
          <p className="text-sm break-words text-ink-3">{origin.join(" · ")}</p>
        )}
        <Details {...entry} />
      </div>
    </li>
  );
}

/** Names of accounts lead to the entries that concern them. */
function WithLinks({ text }: { text: string }) {
  return text.split(/(@\w+)/).map((part, index) =>
    part.startsWith("@") ? (
      <Link
        // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a sentence do not move
        key={index}
        to={operatePath("audit", { account: part.slice(1) })}
        className="rounded-sm font-medium text-accent underline-offset-2 hover:underline"
      >
        {part}
      </Link>
    ) : (
      part
    ),
  );
}

/** The fields of the entry as they are stored, closed until they are wanted. */
function Details({ id, at, action, details, user_agent }: AuditEntry) {
  const fields = Object.entries({ entry: id, at, action, user_agent, ...details });
  return (
    <details className="group/fold">
      <summary className="inline-flex min-h-6 items-center gap-1 rounded-sm text-sm text-ink-3 hover:text-ink">
        <span className="transition-transform group-open/fold:rotate-90">
          <Icon name="next" size={13} />
        </span>
        Details
      </summary>
      <dl className="mt-1 grid grid-cols-[auto_1fr] gap-x-3 gap-y-0.5 font-mono text-xs">
        {fields
          .filter(([, value]) => value !== null)
          .map(([name, value]) => (
            <div key={name} className="contents">
              <dt className="text-ink-3">{name}</dt>
              <dd className="min-w-0 break-all">{String(value)}</dd>
            </div>
          ))}
      </dl>
    </details>
  );
}
