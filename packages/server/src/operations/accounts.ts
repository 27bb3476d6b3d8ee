import { operations } from "@parley/protocol";
import { z } from "zod";
import { publicAccount } from "../account.ts";
import { notFound } from "../failure.ts";
import { rename } from "../membership.ts";
import { bind } from "../operation.ts";
import { cursorOf, pageOf, pageSize } from "../pages.ts";

const cursor = cursorOf(z.string());

const getMe = bind(operations.getMe, async ({ caller }) => publicAccount(caller.account));

const getUser = bind(operations.getUser, async ({ store }, { username }) => {
  const account = await store.read((tx) => tx.account(username));
  if (!account) throw notFound(`user ${username}`);
  return publicAccount(account);
});

const getUsers = bind(operations.getUsers, async ({ store, caller, config }, input) => {
  const limit = pageSize(input.limit, config.limits);
  const found = await store.read((tx) =>
    tx.listAccounts({
      viewerId: caller.account.id,
      query: input.query?.trim(),
      usernames: input.usernames,
      after: cursor.decode(input.cursor),
      limit: limit + 1,
    }),
  );
  return pageOf(found.map(publicAccount), limit, (last) => cursor.encode(last.username));
});

const updateMe = bind(operations.updateMe, ({ store, caller }, { display_name }) =>
  store.write(async (tx) => {
    await rename(tx, caller.account, display_name);
    return publicAccount({ ...caller.account, display_name });
  }),
);

export const accounts = [getMe, getUser, getUsers, updateMe];
