import { operations } from "@parley/protocol";
import { z } from "zod";
import { changeDisplayName } from "../domain/accounts.ts";
import { cursorOf, pageOf, pageSize } from "../domain/pagination.ts";
import { bind } from "../operation.ts";
import { publicAccount } from "../rules/accounts.ts";
import { notFound } from "../rules/failure.ts";
import { isOperator } from "../security/operators.ts";

const listCursor = cursorOf(z.string());
const findCursor = cursorOf(z.object({ name: z.string(), username: z.string() }));

const getMe = bind(operations.getMe, async ({ store, config, caller: { account } }) => {
  const operates = await store.read((tx) => isOperator(tx, account, config.operators));
  return { ...publicAccount(account), ...(operates && { is_operator: true as const }) };
});

const getUser = bind(operations.getUser, async ({ store }, { username }) => {
  const account = await store.read((tx) => tx.account(username));
  if (!account) throw notFound(`user ${username}`);
  return publicAccount(account);
});

const getUsers = bind(operations.getUsers, async ({ store, caller, config }, input) => {
  const limit = pageSize(input.limit, config.limits);
  const common = { viewerId: caller.account.id, limit: limit + 1 };
  const query = input.query?.trim();
  if (query && !input.usernames) {
    const after = findCursor.decode(input.cursor);
    const found = await store.read((tx) => tx.findAccounts({ ...common, query, after }));
    const { items, next_cursor } = pageOf(found, limit, ({ name, username }) =>
      findCursor.encode({ name, username }),
    );
    return { items: items.map(publicAccount), next_cursor };
  }
  const { usernames } = input;
  const after = listCursor.decode(input.cursor);
  const found = await store.read((tx) => tx.listAccounts({ ...common, usernames, after }));
  return pageOf(found.map(publicAccount), limit, (last) => listCursor.encode(last.username));
});

const updateMe = bind(operations.updateMe, ({ store, caller }, { display_name }) =>
  store.write((tx) => changeDisplayName(tx, caller.account, display_name)),
);

export const accounts = [getMe, getUser, getUsers, updateMe];
