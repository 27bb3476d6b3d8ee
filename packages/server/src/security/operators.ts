import { conflict } from "../rules/failure.ts";
import type { AccountRecord } from "../store/accounts.ts";
import type { ReadTx } from "../store/store.ts";

/** Whether an account may call operations of access `operator`: by PARLEY_OPERATORS, or by a command. */
export const isOperator = async (
  tx: ReadTx,
  { id, username }: AccountRecord,
  configured: readonly string[],
): Promise<boolean> => configured.includes(username) || (await tx.isOperator(id));

/** Throws `conflict` if the account is an operator and there is no other who can sign in. */
export async function checkNotLastOperator(
  tx: ReadTx,
  account: AccountRecord,
  configured: readonly string[],
): Promise<void> {
  if (!(await isOperator(tx, account, configured))) return;
  const operators = [...(await tx.operators()), ...(await tx.accounts(configured))];
  const others = operators.filter(({ id, suspended_at }) => {
    return id !== account.id && suspended_at === null;
  });
  if (others.length > 0) return;
  throw conflict(
    "the last operator cannot be deleted: make another person an operator first, or remove this one from the operators",
  );
}
