import type { Command } from "./command.ts";

interface Listed {
  /** The name of the command, then its other names. */
  readonly names: readonly [string, ...string[]];
  load(): Promise<Command>;
}

/** Commands are loaded when they are chosen, so that the server starts without the others. */
const listed = <Key extends string>(
  names: Listed["names"],
  load: () => Promise<Record<NoInfer<Key>, Command>>,
  key: Key,
): Listed => ({ names, load: async () => (await load())[key] });

const users = () => import("./users.ts");
const accounts = () => import("./user-accounts.ts");
const operators = () => import("./operators.ts");
const keys = () => import("./service-keys.ts");

/** The commands of the program, in the order of the help. */
export const commands: readonly Listed[] = [
  listed(["start", "serve"], () => import("./start.ts"), "start"),
  listed(["doctor"], () => import("./doctor/doctor.ts"), "doctor"),
  listed(["ready"], () => import("./ready.ts"), "ready"),
  listed(["users list"], users, "listUsers"),
  listed(["users create"], users, "createUser"),
  listed(["users reset", "password reset"], users, "resetUser"),
  listed(["users reset-link"], users, "resetLink"),
  listed(["users sessions"], users, "userSessions"),
  listed(["users suspend"], accounts, "suspendUser"),
  listed(["users restore"], accounts, "restoreUser"),
  listed(["users erase"], accounts, "eraseUser"),
  listed(["users export"], accounts, "exportUser"),
  listed(["operators list"], operators, "listOperators"),
  listed(["operators add"], operators, "addOperator"),
  listed(["operators remove"], operators, "removeOperator"),
  listed(["service-keys create"], keys, "createServiceKey"),
  listed(["service-keys list"], keys, "listServiceKeys"),
  listed(["service-keys revoke"], keys, "revokeServiceKey"),
  listed(["keys rotate"], () => import("./keys-rotate.ts"), "rotateKeysCommand"),
  listed(["backup"], () => import("./backup/backup.ts"), "backup"),
  listed(["restore"], () => import("./backup/restore.ts"), "restore"),
  listed(["migrate"], () => import("./migrate.ts"), "migrate"),
  listed(["history renew"], () => import("./history-renew.ts"), "renewHistory"),
];

/** The command that runs when none is named. */
export const DEFAULT_COMMAND = "start";
