import type { Command } from "./command.ts";

interface Listed {
  /** The name of the command, then its other names. */
  readonly names: readonly [string, ...string[]];
  /** Commands are loaded when they are chosen, so that the server starts without the others. */
  load(): Promise<Command>;
}

/** The commands of the program, in the order of the help. */
export const commands: readonly Listed[] = [
  { names: ["start", "serve"], load: async () => (await import("./start.ts")).start },
  { names: ["doctor"], load: async () => (await import("./doctor/doctor.ts")).doctor },
  { names: ["ready"], load: async () => (await import("./ready.ts")).ready },
  { names: ["users list"], load: async () => (await import("./users.ts")).listUsers },
  { names: ["users create"], load: async () => (await import("./users.ts")).createUser },
  {
    names: ["users reset", "password reset"],
    load: async () => (await import("./users.ts")).resetUser,
  },
  { names: ["users reset-link"], load: async () => (await import("./reset-link.ts")).resetLink },
  { names: ["users sessions"], load: async () => (await import("./users.ts")).userSessions },
  { names: ["users suspend"], load: async () => (await import("./user-accounts.ts")).suspendUser },
  { names: ["users restore"], load: async () => (await import("./user-accounts.ts")).restoreUser },
  { names: ["users erase"], load: async () => (await import("./user-accounts.ts")).eraseUser },
  { names: ["users export"], load: async () => (await import("./user-accounts.ts")).exportUser },
  {
    names: ["operators list"],
    load: async () => (await import("./operators.ts")).listOperators,
  },
  { names: ["operators add"], load: async () => (await import("./operators.ts")).addOperator },
  {
    names: ["operators remove"],
    load: async () => (await import("./operators.ts")).removeOperator,
  },
  {
    names: ["service-keys create"],
    load: async () => (await import("./service-keys.ts")).createServiceKey,
  },
  {
    names: ["service-keys list"],
    load: async () => (await import("./service-keys.ts")).listServiceKeys,
  },
  {
    names: ["service-keys revoke"],
    load: async () => (await import("./service-keys.ts")).revokeServiceKey,
  },
  {
    names: ["keys rotate"],
    load: async () => (await import("./keys-rotate.ts")).rotateKeysCommand,
  },
  { names: ["backup"], load: async () => (await import("./backup/backup.ts")).backup },
  { names: ["restore"], load: async () => (await import("./backup/restore.ts")).restore },
  { names: ["migrate"], load: async () => (await import("./migrate.ts")).migrate },
  {
    names: ["history renew"],
    load: async () => (await import("./history-renew.ts")).renewHistory,
  },
];

/** The command that runs when none is named. */
export const DEFAULT_COMMAND = "start";
