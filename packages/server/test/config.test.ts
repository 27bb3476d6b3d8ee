import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Config, ConfigError, readConfig } from "../src/config/config.ts";

type Environment = Record<string, string>;

/** Settings that are accepted, and what becomes of them. */
function accepts(
  table: Record<string, [env: Environment, read: (config: Config) => unknown, unknown]>,
) {
  for (const [name, [env, read, expected]] of Object.entries(table)) {
    test(name, () => expect(read(readConfig(env))).toEqual(expected as never));
  }
}

/** Settings that stop the start with one sentence, which names the variable. */
function refuses(variable: string, values: string[], env: Environment = {}) {
  for (const value of values) {
    const shown = value.includes('"') ? value.slice(0, 140) : JSON.stringify(value);
    test(`${variable}=${shown} is refused`, () => {
      expectRefusal({ ...env, [variable]: value }, variable);
    });
  }
}

function expectRefusal(env: Environment, variable: string): void {
  let refusal: unknown;
  try {
    readConfig(env);
  } catch (error) {
    refusal = error;
  }
  expect(refusal).toBeInstanceOf(ConfigError);
  const { message } = refusal as ConfigError;
  expect(message).toContain(variable);
  expect(message).toMatch(/^[A-Z][^\n]*[.?]$/);
  expect(message).not.toContain("undefined");
}

test("the defaults are those of the contract", () => {
  const { providers, ...rest } = readConfig({});
  expect(rest).toMatchObject({
    host: "127.0.0.1",
    port: 8080,
    dataDir: "./data",
    signUp: { kind: "open" },
    oidc: null,
    passwordSignIn: true,
    sandbox: true,
    masterKeys: null,
    proxies: 0,
    origins: [],
    logLevel: "info",
    strictErrors: false,
  });
  expect([...providers.keys()]).toEqual(["claude", "gpt"]);
  expect(providers.get("claude")).toMatchObject({ protocol: "anthropic" });
  expect(providers.get("gpt")).toMatchObject({ protocol: "openai" });
});

describe("variables that are no setting", () => {
  test("are ignored if they are of other programs", () => {
    const others = {
      PATH: "/bin",
      PARLEY_URL: "http://127.0.0.1:8080",
      PARLEY_TEST_SERVICES: "{}",
      PARLEY_SERVICE_HOST: "10.0.0.7",
      PARLEY_SERVICE_PORT_HTTP: "80",
      PARLEY_PORT: "tcp://10.0.0.7:80",
      PARLEY_PORT_80_TCP_ADDR: "10.0.0.7",
    };
    expect(readConfig(others)).toEqual(readConfig({}));
  });

  for (const [name, nearest] of Object.entries({
    PARLEY_SIGN_UP: "PARLEY_SIGNUP",
    PARLEY_MASTERKEY: "PARLEY_MASTER_KEY",
    PARLEY_DATABASE_URL: "DATABASE_URL",
    PARLEY_PORT: "PORT",
    parley_signup: "PARLEY_SIGNUP",
  })) {
    test(`${name} stops the start with the nearest name, and its value is not shown`, () => {
      const read = () => readConfig({ [name]: "a-hidden-value" });
      expect(read).toThrow(`${name} is not a setting of Parley: correct or remove it.`);
      expect(read).toThrow(`Did you mean "${nearest}"?`);
      expect(read).not.toThrow("a-hidden-value");
    });
  }
});

test("a variable that is only the prefix suggests no setting", () => {
  expect(() => readConfig({ PARLEY_: "1" })).toThrow(/correct or remove it\.$/);
});

describe("settings of the address and the data folder", () => {
  accepts({
    "PORT is a number": [{ PORT: "9000" }, ({ port }) => port, 9000],
    "PORT 0 takes any free port": [{ PORT: "0" }, ({ port }) => port, 0],
    "PORT may be the highest port": [{ PORT: "65535" }, ({ port }) => port, 65_535],
    "HOST is an address": [{ HOST: "0.0.0.0" }, ({ host }) => host, "0.0.0.0"],
    "an empty HOST means the default": [{ HOST: "" }, ({ host }) => host, "127.0.0.1"],
    "PARLEY_DATA is a folder": [{ PARLEY_DATA: "/srv/x" }, ({ dataDir }) => dataDir, "/srv/x"],
    "an empty PARLEY_DATA means the default": [
      { PARLEY_DATA: "" },
      ({ dataDir }) => dataDir,
      "./data",
    ],
  });
  refuses("PORT", ["", " ", "http", "-1", "65536", "80.5", "80a", "Infinity", "NaN"]);
});

describe("settings of the backends", () => {
  const several = {
    DATABASE_URL: "postgres://db/parley",
    NATS_URL: "nats://bus:4222",
    PARLEY_MASTER_KEY: Buffer.alloc(32, 1).toString("base64"),
  };
  accepts({
    "empty addresses mean the defaults": [
      { DATABASE_URL: "", NATS_URL: "" },
      ({ port }) => port,
      8080,
    ],
  });
  accepts({
    "DATABASE_URL names PostgreSQL": [
      { DATABASE_URL: "postgres://parley:secret@db:5432/parley?sslmode=disable" },
      ({ database }) => database,
      { url: "postgres://parley:secret@db:5432/parley", tls: false },
    ],
    "a database on another host uses TLS by default": [
      { DATABASE_URL: "postgres://db.example.com/parley" },
      ({ database }) => database,
      { url: "postgres://db.example.com/parley", tls: { rejectUnauthorized: false } },
    ],
    "a database on this machine uses no TLS by default": [
      { DATABASE_URL: "postgres://[::1]/parley" },
      ({ database }) => database,
      { url: "postgres://[::1]/parley", tls: false },
    ],
    "NATS on another host uses TLS by default": [
      several,
      ({ nats }) => nats?.tls !== undefined,
      true,
    ],
    "NATS_TLS turns TLS off": [{ ...several, NATS_TLS: "off" }, ({ nats }) => nats?.tls, undefined],
    "NATS on this machine uses no TLS by default": [
      { ...several, NATS_URL: "nats://localhost:4222" },
      ({ nats }) => nats?.tls,
      undefined,
    ],
    "sslmode=require turns TLS on": [
      { DATABASE_URL: "postgresql://db/parley?sslmode=require" },
      ({ database }) => database,
      { url: "postgresql://db/parley", tls: { rejectUnauthorized: false } },
    ],
    "sslmode=verify-full verifies the certificate": [
      { DATABASE_URL: `postgres://db/parley?sslmode=verify-full&sslrootcert=${import.meta.path}` },
      ({ database }) => Object.keys(database?.tls || {}).toSorted(),
      ["ca", "rejectUnauthorized"],
    ],
    "NATS_URL names one server or several": [
      { ...several, NATS_URL: "nats://a:4222, tls://b:4222" },
      ({ nats }) => nats?.servers,
      ["nats://a:4222", "tls://b:4222"],
    ],
    "credentials and certificates of NATS are files": [
      { ...several, NATS_CREDS: import.meta.path, NATS_CA: import.meta.path },
      ({ nats }) => [nats?.credentialsFile, nats?.tls?.caFile],
      [import.meta.path, import.meta.path],
    ],
  });
  refuses("DATABASE_URL", [
    "mysql://localhost/parley",
    "nonsense",
    "postgres://db/parley?sslmode=maybe",
    "postgres://db/parley?sslmode=verify-full&sslrootcert=/nowhere",
  ]);
  refuses("NATS_URL", ["http://localhost", "nonsense", "nats://a,nonsense"], several);
  refuses("NATS_CREDS", ["/nowhere"], several);
  refuses("NATS_TLS", ["maybe"], several);
  refuses("NATS_CA", ["/nowhere"], several);
  refuses("PARLEY_FILES", ["s3://my bucket/x", "s3://", "s3://bucket?key=x", "ftp://files"]);

  test("an error about PARLEY_FILES does not repeat a secret in it", () => {
    for (const PARLEY_FILES of ["s3://key:s3cret@bucket", "s3://key:s3cret@my bucket"]) {
      expectRefusal({ PARLEY_FILES }, "PARLEY_FILES");
      expect(() => readConfig({ PARLEY_FILES })).not.toThrow("s3cret");
    }
  });

  test("several nodes need a shared database, master key and invite code", () => {
    const { DATABASE_URL: _, ...noDatabase } = several;
    expectRefusal(noDatabase, "DATABASE_URL");
    const { PARLEY_MASTER_KEY: __, ...noKey } = several;
    expectRefusal(noKey, "PARLEY_MASTER_KEY");
    expectRefusal({ ...several, PARLEY_SIGNUP: "invite" }, "PARLEY_SIGNUP");
  });
});

describe("sign-up", () => {
  const signUp = (config: Config) => config.signUp;
  accepts({
    "it may be open": [{ PARLEY_SIGNUP: "open" }, signUp, { kind: "open" }],
    "it may be closed": [{ PARLEY_SIGNUP: "closed" }, signUp, { kind: "closed" }],
    "it may be by invitation": [{ PARLEY_SIGNUP: "invite" }, signUp, { kind: "invite", codes: [] }],
    "it may be by certain codes": [
      { PARLEY_SIGNUP: "invite:one,two" },
      signUp,
      { kind: "invite", codes: ["one", "two"] },
    ],
    "a code may have a colon": [
      { PARLEY_SIGNUP: "invite:a:b" },
      signUp,
      { kind: "invite", codes: ["a:b"] },
    ],
  });
  refuses("PARLEY_SIGNUP", ["", "Open", "invite:", "invite:,", "closed:x", "everyone"]);
});

describe("OIDC issuer", () => {
  const issuer = { PARLEY_OIDC_ISSUER: "https://id.example.com", PARLEY_OIDC_AUDIENCE: "parley" };
  const read = (config: Config) => config.oidc;
  const expected = {
    issuer: "https://id.example.com",
    audience: "parley",
    usernameClaim: "preferred_username",
    client: null,
  };
  const client = {
    PARLEY_OIDC_ISSUER: "https://id.example.com:8443/realms/staff",
    PARLEY_OIDC_CLIENT_ID: "parley-web",
  };
  const folders: string[] = [];
  afterAll(() => {
    for (const folder of folders) rmSync(folder, { recursive: true });
  });
  const secretFile = (content: string) => {
    const folder = mkdtempSync(join(tmpdir(), "parley-secret-"));
    folders.push(folder);
    const path = join(folder, "secret");
    writeFileSync(path, content);
    return { PARLEY_OIDC_CLIENT_SECRET_FILE: path };
  };
  const readClient = (config: Config) => config.oidc?.client;
  const expectedClient = {
    id: "parley-web",
    secret: null,
    name: "id.example.com:8443",
    scopes: "openid profile",
  };
  accepts({
    "a client needs no audience; tokens are then not accepted": [
      client,
      (config) => [config.oidc?.audience, config.oidc?.client],
      [null, expectedClient],
    ],
    "the client has a secret, a name and scopes": [
      {
        ...client,
        ...secretFile("s3cret + %\n"),
        PARLEY_OIDC_NAME: "Example SSO",
        PARLEY_OIDC_SCOPES: " openid  email ",
      },
      readClient,
      { ...expectedClient, secret: "s3cret + %", name: "Example SSO", scopes: "openid email" },
    ],
    "issuer and audience are given together": [issuer, read, expected],
    "the username claim can be changed": [
      { ...issuer, PARLEY_OIDC_USERNAME_CLAIM: "nickname" },
      read,
      { ...expected, usernameClaim: "nickname" },
    ],
    "an empty issuer means none": [{ ...issuer, PARLEY_OIDC_ISSUER: "" }, read, null],
  });
  refuses(
    "PARLEY_OIDC_ISSUER",
    ["id.example.com", "not a url", "http://id.example.com", "ftp://id.example.com"],
    issuer,
  );
  test.each(["http://127.0.0.1:9000", "http://localhost/realm", "http://[::1]:9000"])(
    "may be %s on this machine",
    (url) => expect(read(readConfig({ ...issuer, PARLEY_OIDC_ISSUER: url }))?.issuer).toBe(url),
  );
  refuses("PARLEY_OIDC_AUDIENCE", [""], issuer);
  refuses("PARLEY_OIDC_SCOPES", ["profile", 'openid "x"'], client);
  refuses("PARLEY_OIDC_NAME", ["x".repeat(41), "a\nb"], client);
  refuses("PARLEY_OIDC_CLIENT_SECRET_FILE", ["/nowhere/at/all"], client);
  test("a client secret has one line, and an error does not repeat it", () => {
    const read = () => readConfig({ ...client, ...secretFile("one\ntwo") });
    expect(read).toThrow("PARLEY_OIDC_CLIENT_SECRET_FILE must name a file with one line");
    expect(() => readConfig({ ...client, ...secretFile("") })).toThrow(ConfigError);
  });
});

describe("sign-in with a password", () => {
  const read = (config: Config) => config.passwordSignIn;
  accepts({
    "is on by default": [{}, read, true],
    "can be switched off": [{ PARLEY_PASSWORD_SIGN_IN: "off" }, read, false],
  });
  refuses("PARLEY_PASSWORD_SIGN_IN", ["", "no"]);
});

describe("policy", () => {
  const read = (config: Config) => config.policy;
  const everyone = '{"directory":"shared","applies_to":"everyone"}';
  accepts({
    "restricts nothing by default": [{}, read, { applies_to: "product", overrides: {} }],
    "may be a JSON object": [
      { PARLEY_POLICY: everyone },
      read,
      { applies_to: "everyone", overrides: { directory: "shared" } },
    ],
  });

  test("may be in a file", () => {
    const folder = mkdtempSync(join(tmpdir(), "parley-policy-"));
    const PARLEY_POLICY = join(folder, "policy.json");
    writeFileSync(PARLEY_POLICY, '{"rename":false}');
    const expected = { applies_to: "product", overrides: { rename: false } } as const;
    expect(read(readConfig({ PARLEY_POLICY }))).toEqual(expected);
    rmSync(folder, { recursive: true });
  });
  refuses("PARLEY_POLICY", [
    "{",
    "missing.json",
    '{"directory":"nobody"}',
    '{"rename":"no"}',
    '{"renames":false}',
    '{"applies_to":"staff"}',
  ]);
});

describe("the settings of providers", () => {
  const local = {
    display_name: "Local",
    protocol: "openai" as const,
    base_url: "http://localhost:11434/v1",
    model: "llama",
  };
  const given = (providers: unknown) => ({ PARLEY_PROVIDERS: JSON.stringify(providers) });
  const read = (config: Config) => Object.fromEntries(config.providers);
  const filled = { ...local, max_output_tokens: 4096, context_tokens: 100_000, tools: true };
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "parley-config-"));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  accepts({
    "they may be a JSON object": [given({ local }), read, { local: filled }],
    "their sizes may be given": [
      given({ local: { ...local, max_output_tokens: 10, context_tokens: 20 } }),
      read,
      { local: { ...filled, max_output_tokens: 10, context_tokens: 20 } },
    ],
    "models may be without tools": [
      given({ local: { ...local, tools: false } }),
      read,
      { local: { ...filled, tools: false } },
    ],
    "ids have up to 32 characters": [
      given({ [`a${"b-_9".repeat(7)}xyz`]: local }),
      read,
      { [`a${"b-_9".repeat(7)}xyz`]: filled },
    ],
    "white space around the object is ignored": [
      { PARLEY_PROVIDERS: `\n ${JSON.stringify({ local })}\n` },
      read,
      { local: filled },
    ],
    "an empty variable means the default": [
      { PARLEY_PROVIDERS: "" },
      (config) => [...config.providers.keys()],
      ["claude", "gpt"],
    ],
  });

  test("they may be in a file", () => {
    const file = join(folder, "providers.json");
    writeFileSync(file, JSON.stringify({ local }));
    expect(read(readConfig({ PARLEY_PROVIDERS: file }))).toEqual({ local: filled });
  });

  const wrong = (change: object) => JSON.stringify({ local: { ...local, ...change } });
  refuses("PARLEY_PROVIDERS", [
    "{",
    "[]",
    "no-such-file.json",
    '{"local": null}',
    JSON.stringify({ Local: local }),
    JSON.stringify({ l: local }),
    JSON.stringify({ "local:x": local }),
    wrong({ protocol: "smtp" }),
    wrong({ base_url: "localhost" }),
    wrong({ base_url: "file:///etc/passwd" }),
    wrong({ model: "" }),
    wrong({ display_name: "" }),
    wrong({ api_key_file: "" }),
    wrong({ api_key: "a-key-does-not-belong-here" }),
    wrong({ instructions: " " }),
    wrong({ daily_tokens_per_user: 0 }),
    wrong({ display_name: "x".repeat(65) }),
    wrong({ max_output_tokens: 0 }),
    wrong({ context_tokens: "many" }),
    wrong({ tools: "no" }),
    wrong({ max_output_token: 100 }),
  ]);

  test("an invalid identifier is named in the error", () => {
    expect(() => readConfig(given({ Local: local }))).toThrow(
      'PARLEY_PROVIDERS: an identifier has 2 to 32 characters, a-z, 0-9, _ and -, and begins with a letter, unlike "Local".',
    );
  });

  test("a misspelled field is named, although the right one is then missing", () => {
    const { model, ...others } = local;
    expect(() => readConfig(given({ local: { ...others, modl: model } }))).toThrow(
      "local has the unknown field modl; its fields are display_name,",
    );
  });

  describe("with a key of the operator", () => {
    const keyFile = (content: string) => {
      const file = join(folder, `key-${Bun.randomUUIDv7()}`);
      writeFileSync(file, content);
      return file;
    };

    test("the key is read from its file, and is not part of the provider", () => {
      const api_key_file = keyFile("  secret-key-123\n");
      const paid = { instructions: "Be brief.", daily_tokens_per_user: 5000, api_key_file };
      const config = readConfig(given({ local: { ...local, ...paid }, other: local }));
      expect(read(config)).toEqual({ local: { ...filled, ...paid }, other: filled });
      expect([...config.operatorKeys]).toEqual([["local", "secret-key-123"]]);
      expect(JSON.stringify([...config.providers])).not.toContain("secret-key");
    });

    test("a file that has no single key is refused, and its content is not repeated", () => {
      for (const content of ["", " \n", "secret one\nsecret two", "secret ü"]) {
        const api_key_file = keyFile(content);
        const settings = given({ local: { ...local, api_key_file } });
        const message =
          "PARLEY_PROVIDERS local.api_key_file must name a file with one API key: a line of printable characters.";
        expect(() => readConfig(settings)).toThrow(message);
      }
      const missing = join(folder, "missing");
      expect(() => readConfig(given({ local: { ...local, api_key_file: missing } }))).toThrow(
        `PARLEY_PROVIDERS local.api_key_file names "${missing}", which cannot be read: it does not exist: correct the path, or create it.`,
      );
    });

    test("a sandbox key is refused when the sandbox is off", () => {
      const api_key_file = keyFile("sandbox-123");
      const settings = given({ local: { ...local, api_key_file } });
      expect([...readConfig(settings).operatorKeys.values()]).toEqual(["sandbox-123"]);
      expect(() => readConfig({ ...settings, PARLEY_SANDBOX: "off" })).toThrow(
        "PARLEY_PROVIDERS local.api_key_file has a sandbox key, and PARLEY_SANDBOX is off.",
      );
    });

    test("a limit needs a key", () => {
      const settings = given({ local: { ...local, daily_tokens_per_user: 5000 } });
      expect(() => readConfig(settings)).toThrow(
        "PARLEY_PROVIDERS local.daily_tokens_per_user: needs api_key_file, whose key it limits.",
      );
    });
  });

  test("a path of a folder is refused", () => {
    expectRefusal({ PARLEY_PROVIDERS: folder }, "PARLEY_PROVIDERS");
  });

  test("a file that is not JSON is refused", () => {
    const file = join(folder, "broken.json");
    writeFileSync(file, "providers: yes");
    expectRefusal({ PARLEY_PROVIDERS: file }, "PARLEY_PROVIDERS");
  });
});

describe("sandbox keys", () => {
  const read = (config: Config) => config.sandbox;
  accepts({
    "they may be accepted": [{ PARLEY_SANDBOX: "on" }, read, true],
    "they may be refused": [{ PARLEY_SANDBOX: "off" }, read, false],
  });
  refuses("PARLEY_SANDBOX", ["", "OFF", "no", "0"]);
});

describe("master keys", () => {
  const key = (fill: number) => Buffer.alloc(32, fill);
  const base64 = (fill: number) => key(fill).toString("base64");
  const read = (config: Config) => config.masterKeys;
  accepts({
    "there may be one": [{ PARLEY_MASTER_KEY: base64(1) }, read, [key(1)]],
    "there may be several, newest first": [
      { PARLEY_MASTER_KEY: `${base64(2)},${base64(1)}` },
      read,
      [key(2), key(1)],
    ],
    "an empty variable means the default": [{ PARLEY_MASTER_KEY: "" }, read, null],
  });
  const short = Buffer.alloc(31, 7).toString("base64");
  const wrong = ["secret", short, `${base64(1)},${short}`, Buffer.alloc(33, 7).toString("base64")];
  refuses("PARLEY_MASTER_KEY", wrong);

  test("the error does not contain the value", () => {
    for (const value of wrong) {
      expect(() => readConfig({ PARLEY_MASTER_KEY: value })).not.toThrow(value);
    }
  });
});

describe("the settings of proxies", () => {
  const read = (config: Config) => config.proxies;
  accepts({ "their number is given": [{ PARLEY_PROXIES: "2" }, read, 2] });
  refuses("PARLEY_PROXIES", ["", "-1", "1.5", "10", "yes"]);
});

describe("private addresses", () => {
  const read = (config: Config) => config.allowPrivateAddresses;
  accepts({
    "are refused by default": [{}, read, false],
    "can be refused": [{ PARLEY_PRIVATE_ADDRESSES: "refuse" }, read, false],
    "can be allowed": [{ PARLEY_PRIVATE_ADDRESSES: "allow" }, read, true],
  });
  refuses("PARLEY_PRIVATE_ADDRESSES", ["", "Allow", "on", "yes", "1"]);
});

describe("the settings of limits", () => {
  const defaults = readConfig({}).limits;
  const given = (limits: unknown) => ({ PARLEY_LIMITS: JSON.stringify(limits) });
  test("have defaults that an operator could give", () => {
    expect(readConfig(given(defaults)).limits).toEqual(defaults);
  });
  const read = (config: Config) => config.limits;
  accepts({
    "an empty variable changes none": [{ PARLEY_LIMITS: "" }, read, defaults],
    "those not named keep their values": [
      given({ page_size: 7 }),
      read,
      { ...defaults, page_size: 7 },
    ],
    "zero lifts a rate, what the calls may cost and how many strangers they may reach": [
      given({ messages_per_second: 0, operations_per_second: 0 }),
      read,
      {
        ...defaults,
        messages_per_second: 0,
        operations_per_second: 0,
        cost_per_second: 0,
        strangers_per_hour: 0,
      },
    ],
    "zero lifts a rate, and leaves given costs and strangers alone": [
      given({ messages_per_second: 0, cost_per_second: 7, strangers_per_hour: 8 }),
      read,
      { ...defaults, messages_per_second: 0, cost_per_second: 7, strangers_per_hour: 8 },
    ],
    "a higher rate of operations raises what they may cost": [
      given({ operations_per_second: 2000 }),
      read,
      { ...defaults, operations_per_second: 2000, cost_per_second: 10_000, cost_burst: 10_000 },
    ],
  });
  for (const name of Object.keys(defaults)) {
    for (const value of [-1, 1.5, "10", null, 1e15]) {
      test(`${name} must not be ${JSON.stringify(value)}`, () => {
        expectRefusal(given({ [name]: value }), "PARLEY_LIMITS");
        expectRefusal(given({ [name]: value }), name);
      });
    }
  }
  refuses("PARLEY_LIMITS", [
    "{",
    "[]",
    "null",
    "5",
    '{"messages": 5}',
    '{"page_size": 0}',
    '{"toString": 5}',
    '{"constructor": 5}',
  ]);
});

describe("web origins", () => {
  const read = (config: Config) => config.origins;
  accepts({
    "they are separated by commas": [
      { PARLEY_ORIGINS: "https://chat.example.com, http://localhost:3000," },
      read,
      ["https://chat.example.com", "http://localhost:3000"],
    ],
    "an empty variable names none": [{ PARLEY_ORIGINS: "" }, read, []],
    "an asterisk is any": [{ PARLEY_ORIGINS: "*" }, read, ["*"]],
  });
  refuses("PARLEY_ORIGINS", [
    "chat.example.com",
    "https://chat.example.com/",
    "https://chat.example.com/path",
    "https://Chat.example.com",
    "https://a.example.com nonsense",
  ]);
});

describe("log level", () => {
  const levels = ["fatal", "error", "warn", "info", "debug", "trace", "silent"];
  for (const level of levels) {
    test(`it may be ${level}`, () =>
      expect(readConfig({ PARLEY_LOG: level }).logLevel).toBe(level));
  }
  refuses("PARLEY_LOG", ["", "INFO", "verbose", "3"]);
});

describe("strict errors", () => {
  const read = (config: Config) => config.strictErrors;
  accepts({
    "they can be switched on": [{ PARLEY_STRICT_ERRORS: "on" }, read, true],
    "they can be switched off": [{ PARLEY_STRICT_ERRORS: "off" }, read, false],
  });
  refuses("PARLEY_STRICT_ERRORS", ["", "ON", "yes", "1"]);
});

describe("tool servers of the operator", () => {
  const list = (...servers: object[]) => ({ PARLEY_TOOL_SERVERS: JSON.stringify(servers) });
  const program = { name: "files", command: "node", args: ["server.js"], env: { A: "1" } };
  const remote = { name: "weather", url: "http://10.0.0.1/mcp", token: "secret" };
  accepts({
    "there are none by default": [{}, ({ toolServers }) => toolServers, []],
    "they may be programs and addresses": [
      list(program, remote, { name: "x", command: "x" }),
      ({ toolServers }) => toolServers,
      [program, remote, { name: "x", command: "x", args: [], env: {} }],
    ],
  });
  refuses("PARLEY_TOOL_SERVERS", [
    "nonsense",
    "[",
    "[1]",
    '[{"name":"a"}]',
    '[{"name":"","url":"https://a.example"}]',
    '[{"name":"a","url":"ftp://a.example"}]',
    '[{"name":"a","url":"https://a.example","command":"a"}]',
    '[{"name":"a","url":"https://a.example","token":"with space"}]',
    '[{"name":"a","command":""}]',
    '[{"name":"a","command":"a","args":"b"}]',
    '[{"name":"a","command":"a","env":{"b":1}}]',
    '[{"name":"a","command":"a"},{"name":"a","command":"b"}]',
  ]);
  test("no refusal repeats a token", () => {
    const bad = list({ ...remote, token: "with secret space" });
    expect(() => readConfig(bad)).toThrow(/^(?!.*secret)/s);
  });
});
