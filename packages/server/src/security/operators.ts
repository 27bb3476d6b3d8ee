import type { AccountRecord } from "../store/accounts.ts";
import type { ReadTx } from "../store/store.ts";

/** Whether an account may call operations of access `operator`: by PARLEY_OPERATORS, or by a command. */
export const isOperator = async (
  tx: ReadTx,
  { id, username }: AccountRecord,
  configured: readonly string[],
): Promise<boolean> => configured.includes(username) || (await tx.isOperator(id));
