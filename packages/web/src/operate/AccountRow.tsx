import type { OutputOf } from "@parley/protocol";
import { useState } from "react";
import { describeError } from "../lib/errors.ts";
import { operatePath } from "../lib/router.ts";
import { dateOf } from "../lib/time.ts";
import { Avatar } from "../ui/Avatar.tsx";
import { Button } from "../ui/Button.tsx";
import { Link } from "../ui/Link.tsx";
import { Menu, type MenuItem } from "../ui/Menu.tsx";
import { Notice } from "../ui/Notice.tsx";
import { EraseAccount } from "./EraseAccount.tsx";
import { ResetLink } from "./ResetLink.tsx";
import { Suspension, useSuspension } from "./Suspension.tsx";

type ManagedAccount = OutputOf<"suspendAccount">;

interface AccountRowProps {
  account: ManagedAccount;
  onChange: (account: ManagedAccount) => void;
  onErased: () => void;
}

export function AccountRow({ account, onChange, onErased }: AccountRowProps) {
  const { username, display_name, suspended_at, is_operator } = account;
  const isSuspended = suspended_at !== null;
  return (
    <li className="flex flex-wrap items-start gap-x-3 gap-y-2 py-3">
      <Avatar account={{ username, display_name, kind: "human", version: 0 }} size={40} />
      <div className="min-w-0 flex-1 basis-52">
        <p className="flex flex-wrap items-baseline gap-x-1.5">
          <span className="min-w-0 text-base font-medium break-words">{display_name}</span>
          <span className="text-sm break-all text-ink-3">@{username}</span>
          {is_operator && <Chip look="bg-accent-soft text-accent">operator</Chip>}
          {isSuspended && <Chip look="bg-danger-soft text-danger">suspended</Chip>}
        </p>
        <p className="text-sm text-ink-3">{datesOf(account)}</p>
        <ProductFields {...account} />
      </div>
      <div className="flex flex-wrap items-center gap-2 max-sm:-ml-2.5 max-sm:basis-full max-sm:pl-13">
        <Link
          to={operatePath("audit", { account: username })}
          className="inline-flex h-8 items-center rounded-md px-2.5 text-sm font-medium text-ink-2 hover:bg-hover hover:text-ink pointer-coarse:h-10"
        >
          Audit log<span className="sr-only"> of @{username}</span>
        </Link>
        {!is_operator && <Actions account={account} onChange={onChange} onErased={onErased} />}
      </div>
    </li>
  );
}

/** Operators cannot be suspended or erased. */
function Actions({ account, onChange, onErased }: AccountRowProps) {
  const { username, display_name, suspended_at } = account;
  const [open, setOpen] = useState<"suspension" | "erasure" | "reset" | null>(null);
  const suspension = useSuspension(onChange);
  const isSuspended = suspended_at !== null;
  const more: (MenuItem | false)[] = [
    !isSuspended && {
      icon: "key",
      label: "Make a reset link",
      onSelect: () => setOpen("reset"),
    },
    { icon: "trash", label: "Erase", danger: true, onSelect: () => setOpen("erasure") },
  ];
  const common = { name: display_name, username, onClose: () => setOpen(null) };
  return (
    <>
      <Button
        size="small"
        look={isSuspended ? "secondary" : "danger"}
        busy={suspension.busy}
        onClick={() => setOpen("suspension")}
      >
        {isSuspended ? "Restore" : "Suspend"}
        <span className="sr-only"> @{username}</span>
      </Button>
      <Menu label={`More for @${username}`} small items={more.filter((item) => item !== false)} />
      {suspension.error !== null && <Notice>{describeError(suspension.error)}</Notice>}
      {open === "suspension" && (
        <Suspension
          {...common}
          isSuspended={isSuspended}
          onConfirm={() => suspension.change(username, !isSuspended)}
        />
      )}
      {open === "reset" && <ResetLink {...common} />}
      {open === "erasure" && <EraseAccount {...common} onErased={onErased} />}
    </>
  );
}

const Chip = ({ look, children }: { look: string; children: string }) => (
  <span className={`rounded-xs px-1.5 text-2xs font-medium ${look}`}>{children}</span>
);

function datesOf({ created_at, last_active_at, suspended_at }: ManagedAccount): string {
  const active = last_active_at ? `last active ${dateOf(last_active_at)}` : "never active";
  const suspended = suspended_at ? ` · suspended ${dateOf(suspended_at)}` : "";
  return `Created ${dateOf(created_at)} · ${active}${suspended}`;
}

/** What the product that created the account stores with it. */
function ProductFields({ external_id, metadata }: ManagedAccount) {
  const fields = [
    ...(external_id === null ? [] : [["external id", external_id] as const]),
    ...Object.entries(metadata),
  ];
  if (fields.length === 0) return null;
  return (
    <dl className="mt-1 flex flex-wrap gap-x-4 gap-y-0.5 text-sm">
      {fields.map(([name, value]) => (
        <div key={name} className="flex min-w-0 gap-1.5">
          <dt className="shrink-0 text-ink-3">{name}</dt>
          <dd className="min-w-0 break-all">{value}</dd>
        </div>
      ))}
    </dl>
  );
}
