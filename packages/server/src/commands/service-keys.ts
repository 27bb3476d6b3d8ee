import { ConfigError, readConfig } from "../config/config.ts";
import { iso } from "../rules/time.ts";
import { hashToken } from "../rules/tokens.ts";
import { newToken } from "../security/tokens.ts";
import type { ServiceKeyRecord } from "../store/service-keys.ts";
import { command } from "./command.ts";
import { openService } from "./people.ts";

const named = { name: "The name of the key, such as the name of the program that uses it." };

export const createServiceKey = command({
  name: "service-keys create",
  summary: "Create a service key for a product's backend, and print it once.",
  details:
    "Whoever has the key can act for every person: keep it on servers. Works while the server runs.",
  arguments: named,
  examples: [{ line: "service-keys create shop", summary: "Prints a new key named shop." }],
  async run({ arguments: { name } }) {
    if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(name)) {
      throw new ConfigError(
        "The name of a key has 1 to 64 letters, digits, dots, dashes and underscores.",
      );
    }
    await using service = await openService(readConfig(), { mustExist: false });
    const key = newToken("service");
    const isNew = await service.log.write(async (tx, record) => {
      const at = Date.now();
      if (!(await tx.insertServiceKey({ name, key_hash: hashToken(key), at }))) return false;
      await record("service_key_created", { service_key: name });
      return true;
    });
    if (!isNew) {
      throw new ConfigError(`The name ${name} is taken. Names of revoked keys stay taken.`);
    }
    return { json: { name, key }, text: key };
  },
});

export const listServiceKeys = command({
  name: "service-keys list",
  summary: "List the service keys, and when they were last used.",
  examples: [{ line: "service-keys list", summary: "Prints one key per line." }],
  async run() {
    await using service = await openService();
    const keys = await service.store.read((tx) => tx.serviceKeys());
    return {
      json: { keys: keys.map(jsonOf) },
      text: keys.map(lineOf).join("\n"),
    };
  },
});

export const revokeServiceKey = command({
  name: "service-keys revoke",
  summary: "Revoke a service key. Calls with it fail from then on.",
  details: "Tokens that were issued with the key stay valid. Works while the server runs.",
  arguments: named,
  examples: [{ line: "service-keys revoke shop", summary: "Revokes the key named shop." }],
  async run({ arguments: { name } }) {
    await using service = await openService();
    const revoked = await service.log.write(async (tx, record) => {
      if (!(await tx.revokeServiceKey(name, Date.now()))) return false;
      await record("service_key_revoked", { service_key: name });
      return true;
    });
    if (!revoked) throw new ConfigError(`There is no service key named ${name} to revoke.`);
    return { json: { name }, text: `The service key ${name} is revoked.` };
  },
});

const jsonOf = ({ name, created_at, last_used_at, revoked_at }: ServiceKeyRecord) => ({
  name,
  created_at: iso(created_at),
  last_used_at: last_used_at && iso(last_used_at),
  revoked_at: revoked_at && iso(revoked_at),
});

function lineOf({ name, created_at, last_used_at, revoked_at }: ServiceKeyRecord): string {
  const used = last_used_at === null ? "never used" : `last used ${iso(last_used_at)}`;
  const revoked = revoked_at === null ? "" : `, revoked ${iso(revoked_at)}`;
  return `${name}: created ${iso(created_at)}, ${used}${revoked}`;
}
