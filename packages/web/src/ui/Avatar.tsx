import { useFileLinks, useProfile } from "@parley/client/react";
import type { Account } from "@parley/protocol";
import type { ReactNode } from "react";
import { ownerOf, providerOf } from "../lib/names.ts";
import { Icon } from "./Icon.tsx";
import { Picture } from "./Picture.tsx";
import { ProviderMark } from "./ProviderMark.tsx";

const hues = [
  "bg-hue-0-soft text-hue-0",
  "bg-hue-1-soft text-hue-1",
  "bg-hue-2-soft text-hue-2",
  "bg-hue-3-soft text-hue-3",
  "bg-hue-4-soft text-hue-4",
  "bg-hue-5-soft text-hue-5",
  "bg-hue-6-soft text-hue-6",
  "bg-hue-7-soft text-hue-7",
];

const sizes = {
  20: "size-5 text-[9px]",
  24: "size-6 text-[10px]",
  32: "size-8 text-xs",
  40: "size-10 text-base",
  64: "size-16 text-xl",
} as const;

type Size = keyof typeof sizes;

/** The same name always has the same colour. */
function hueOf(name: string): string {
  let hash = 298;
  for (const character of name) hash = Math.imul(hash ^ character.charCodeAt(0), 16_777_619);
  return hues[((hash ^ (hash >>> 15)) >>> 0) % hues.length] as string;
}

const initials = (name: string, letters: number) =>
  name
    .split(/[\s_]+/)
    .slice(0, letters)
    .map((word) => Array.from(word)[0] ?? "")
    .join("")
    .toUpperCase();

const shape = ({ kind }: Account) => (kind === "agent" ? "rounded-[28%]" : "rounded-full");

/**
 * People are circles with their picture, or with initials. Agents are squares with the mark of their provider, in the colour
 * of their owner. Hidden from screen readers: a name always stands beside it.
 */
export function Avatar({ account, size = 32 }: { account: Account; size?: Size }) {
  const agent = account.kind === "agent";
  const profile = useProfile(agent || account.deleted ? null : account.username);
  const url = account.deleted ? null : (profile?.preview_url ?? null);
  return (
    <span
      aria-hidden="true"
      className={`relative inline-flex shrink-0 items-center justify-center font-semibold select-none ${sizes[size]} ${hueOf(ownerOf(account.username))} ${shape(account)}`}
    >
      {agent ? (
        <ProviderMark provider={providerOf(account.username)} size={size * 0.6} />
      ) : (
        <Picture url={url} shape={shape(account)}>
          {initials(account.display_name, size > 24 ? 2 : 1)}
        </Picture>
      )}
    </span>
  );
}

const groupSizes = {
  32: ["size-8", 20],
  40: ["size-10", 24],
  64: ["size-16", 40],
} as const;

export type GroupSize = keyof typeof groupSizes;

interface GroupAvatarProps {
  accounts: Account[];
  /** The file of the group's picture. */
  pictureId: string | null;
  size?: GroupSize;
}

/** The avatar of a group: its picture, or two of its members, one behind the other. */
export function GroupAvatar({ accounts, pictureId, size = 40 }: GroupAvatarProps) {
  const links = useFileLinks(pictureId === null ? [] : [pictureId]);
  const members = <MembersAvatar accounts={accounts} size={size} />;
  if (pictureId === null) return members;
  return (
    <Square size={size}>
      <Picture url={links[pictureId]?.preview_url ?? null} shape="rounded-full">
        {members}
      </Picture>
    </Square>
  );
}

const Square = ({ size, children }: { size: GroupSize; children: ReactNode }) => (
  <span aria-hidden="true" className={`relative inline-flex shrink-0 ${groupSizes[size][0]}`}>
    {children}
  </span>
);

function MembersAvatar({ accounts, size }: { accounts: Account[]; size: GroupSize }) {
  const [first, second] = accounts;
  if (!first) return <EmptyGroupAvatar size={size} />;
  if (!second) return <Avatar account={first} size={size} />;
  const [box, each] = groupSizes[size];
  return (
    <span aria-hidden="true" className={`relative shrink-0 ${box}`}>
      <span className="absolute top-0 right-0">
        <Avatar account={second} size={each} />
      </span>
      <span
        className={`absolute bottom-0 left-0 flex ring-2 ring-(--ground,var(--color-surface)) ${shape(first)}`}
      >
        <Avatar account={first} size={each} />
      </span>
    </span>
  );
}

function EmptyGroupAvatar({ size }: { size: GroupSize }) {
  return (
    <span
      aria-hidden="true"
      className={`inline-flex shrink-0 items-center justify-center rounded-full bg-sunken text-ink-3 ${sizes[size]}`}
    >
      <Icon name="users" size={size * 0.5} />
    </span>
  );
}
