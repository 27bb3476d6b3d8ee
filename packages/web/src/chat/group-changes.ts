import type { Account, ConversationChange } from "@parley/protocol";

type Name = (account: Account, isFirst: boolean) => string;

/** A change of the group as a sentence without its full stop. */
export function describeChange(change: ConversationChange, name: Name, isGroup = true): string {
  const { kind, actor, title, always_on } = change;
  const by = name(actor, true);
  switch (kind) {
    case "added":
      return `${by} added ${subjectsOf(change, name, false)}`;
    case "removed":
      return `${by} removed ${subjectsOf(change, name, false)}`;
    case "left":
      return `${subjectsOf(change, name, true)} left`;
    case "renamed":
      return title === null
        ? `${by} took the title away`
        : `${by} named the ${isGroup ? "group" : "chat"} «${title}»`;
    case "admin_changed": {
      const admin = subjectsOf(change, name, true);
      return `${admin} ${admin === "You" ? "are" : "is"} the admin now`;
    }
    case "mode_changed":
      return `${by} set ${subjectsOf(change, name, false)} to answer ${always_on ? "every message" : "when mentioned"}`;
    case "picture_changed":
      return `${by} changed the group's picture`;
    default:
      return `${by} changed the group`;
  }
}

function subjectsOf(
  { subjects, subject_count }: ConversationChange,
  name: Name,
  isFirst: boolean,
): string {
  const names = subjects.map((account, place) => name(account, isFirst && place === 0));
  const more = subject_count - subjects.length;
  if (more > 0) names.push(`${more.toLocaleString()} more`);
  return names.length < 2
    ? (names[0] ?? "nobody")
    : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

/** The `seq` at which somebody was last added to the group, among the loaded changes; 0 if never. */
export const joinedAt = (changes: readonly ConversationChange[], username: string): number =>
  changes.findLast(
    ({ kind, subjects }) =>
      kind === "added" && subjects.some((account) => account.username === username),
  )?.seq ?? 0;
