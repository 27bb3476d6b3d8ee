import { describe, expect, test } from "bun:test";
import { chownSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { newMasterKey, openMasterKeyFile, parseMasterKeys } from "../src/config/master-keys.ts";
import { createVault, keyTail } from "../src/security/vault.ts";

const binding = { owner_id: 7, provider: "claude" };
const KEY = "sk-test-0123456789";
const master = () => Buffer.from(newMasterKey(), "base64");

/** A sealed key with one part of it replaced. */
function altered(sealed: string, part: number, change: (value: string) => string): string {
  return sealed
    .split(".")
    .map((value, index) => (index === part ? change(value) : value))
    .join(".");
}

const flipped = (body: string, byte: number) => {
  const bytes = Buffer.from(body, "base64url");
  bytes.writeUInt8(bytes.readUInt8(byte) ^ 1, byte);
  return bytes.toString("base64url");
};

describe("a sealed key", () => {
  const one = createVault([master()]);
  const sealed = one.seal(KEY, binding);
  const bytes = Buffer.from(sealed.split(".")[2] ?? "", "base64url").length;

  test("opens for its own owner and provider", () => {
    expect(one.open(sealed, binding)).toBe(KEY);
  });

  test("may contain any text", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme" }),
        fc.nat(),
        fc.string(),
        (key, owner_id, provider) => {
          expect(one.open(one.seal(key, { owner_id, provider }), { owner_id, provider })).toBe(key);
        },
      ),
    );
  });

  test("reveals nothing of the key", () => {
    expect(sealed).not.toContain(KEY);
    expect(Buffer.from(sealed.split(".")[2] ?? "", "base64url").toString("latin1")).not.toContain(
      KEY,
    );
  });

  test("has a random nonce, so that no two are equal", () => {
    const many = Array.from({ length: 1000 }, () => one.seal(KEY, binding));
    const nonces = many.map((each) => Buffer.from(each.split(".")[2] ?? "", "base64url"));
    expect(new Set(many).size).toBe(1000);
    expect(new Set(nonces.map((each) => each.subarray(0, 12).toString("hex"))).size).toBe(1000);
  });

  test("does not open for another owner", () => {
    expect(() => one.open(sealed, { ...binding, owner_id: 8 })).toThrow();
  });

  test("does not open for another provider", () => {
    expect(() => one.open(sealed, { ...binding, provider: "gpt" })).toThrow();
  });

  test("does not open for an owner and provider that are equal only when concatenated", () => {
    const odd = one.seal(KEY, { owner_id: 1, provider: "2:x" });
    expect(() => one.open(odd, { owner_id: 12, provider: "x" })).toThrow();
  });

  test("does not open with another master key", () => {
    expect(() => createVault([master()]).open(sealed, binding)).toThrow(/no master key/);
  });

  test("does not open with any byte changed", () => {
    for (let byte = 0; byte < bytes; byte++) {
      const tampered = altered(sealed, 2, (body) => flipped(body, byte));
      expect(() => one.open(tampered, binding)).toThrow();
    }
  });

  test("does not open when truncated, even inside its tag", () => {
    for (let length = 0; length < bytes; length++) {
      const cut = altered(sealed, 2, (body) =>
        Buffer.from(body, "base64url").subarray(0, length).toString("base64url"),
      );
      expect(() => one.open(cut, binding)).toThrow();
    }
  });

  test("does not open with an unknown or invalid format", () => {
    for (const nonsense of ["", ".", "..", "v2.x.y", KEY, altered(sealed, 0, () => "v0")]) {
      expect(() => one.open(nonsense, binding)).toThrow();
    }
  });

  test("is never part of an error", () => {
    for (const attempt of [altered(sealed, 2, (body) => flipped(body, 14)), "v1.x.y"]) {
      try {
        one.open(attempt, binding);
      } catch (error) {
        expect(Bun.inspect(error)).not.toContain(KEY);
      }
    }
  });
});

describe("rotation", () => {
  const [older, newer] = [master(), master()] as const;

  test("seals with the newest key and opens with every one", () => {
    const before = createVault([older]).seal(KEY, binding);
    const both = createVault([newer, older]);
    const after = both.seal(KEY, binding);
    expect([before, after].map((sealed) => both.open(sealed, binding))).toEqual([KEY, KEY]);
    expect([before, after].map((sealed) => both.isCurrent(sealed))).toEqual([false, true]);
    expect(createVault([newer]).open(after, binding)).toBe(KEY);
    expect(() => createVault([newer]).open(before, binding)).toThrow();
  });

  test("reaches a running process when it opens a key sealed with a new master key", () => {
    let masters: Buffer[] = [older];
    const running = createVault(masters, () => masters);
    masters = [newer, older];
    const sealed = createVault(masters).seal(KEY, binding);
    expect(running.open(sealed, binding)).toBe(KEY);
  });

  test("reaches a running process when it seals a key", () => {
    let masters: Buffer[] = [older];
    const running = createVault(masters, () => masters);
    masters = [newer, older];
    const sealed = running.seal(KEY, binding);
    expect(createVault([newer]).open(sealed, binding)).toBe(KEY);
    expect(running.isCurrent(sealed)).toBe(true);
  });
});

describe("the installation's own master keys", () => {
  const inFolder = (check: (path: string) => void) => {
    const folder = mkdtempSync(join(tmpdir(), "parley-vault-"));
    try {
      check(join(folder, "master.key"));
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  };
  const mode = (path: string) => statSync(path).mode & 0o777;

  test("are created once, readable by their owner only", () =>
    inFolder((path) => {
      const [first] = openMasterKeyFile(path).read();
      expect(first).toHaveLength(32);
      expect(mode(path)).toBe(0o600);
      expect(openMasterKeyFile(path).read()).toEqual([first as Buffer]);
    }));

  test("get a new first key and keep the others", () =>
    inFolder((path) => {
      const file = openMasterKeyFile(path);
      const before = file.read();
      file.add();
      const after = file.read();
      expect(after).toHaveLength(2);
      expect(after.slice(1)).toEqual(before);
      expect(mode(path)).toBe(0o600);
    }));

  test.if(process.getuid?.() === 0)("keep their owner when root adds a key", () =>
    inFolder((path) => {
      const file = openMasterKeyFile(path);
      chownSync(path, 12_345, 54_321);
      file.add();
      expect(statSync(path)).toMatchObject({ uid: 12_345, gid: 54_321 });
    }),
  );

  test("that are damaged are refused, and not part of the error", () =>
    inFolder((path) => {
      const file = openMasterKeyFile(path);
      const text = readFileSync(path, "utf8").trim();
      writeFileSync(path, text.slice(4));
      expect(() => file.read()).toThrow(/has no master keys/);
      try {
        file.read();
      } catch (error) {
        expect(String(error)).not.toContain(text.slice(4));
      }
    }));
});

describe("master keys as configured", () => {
  const [one, other] = [newMasterKey(), newMasterKey()] as const;

  test("may be one or several, newest first", () => {
    expect(parseMasterKeys(one)).toEqual([Buffer.from(one, "base64")]);
    expect(parseMasterKeys(`${one},${other}`)?.map((key) => key.toString("base64"))).toEqual([
      one,
      other,
    ]);
    expect(parseMasterKeys(` ${one} ,\n${other}\n`)).toHaveLength(2);
  });

  test("that are empty, too short or too long are invalid", () => {
    const bytes = (length: number) => Buffer.alloc(length, 1).toString("base64");
    for (const text of ["", ",", "x", bytes(31), bytes(33), `${one},${bytes(16)}`]) {
      expect(parseMasterKeys(text)).toBeNull();
    }
  });
});

describe("the tail of a key", () => {
  test("is eight dots and the last four characters", () => {
    expect(keyTail("sk-test-0123456789")).toBe("••••••••6789");
    expect(keyTail("12345")).toBe("••••••••2345");
  });

  test("of a key of four characters or fewer is the mask alone", () => {
    for (const key of ["x", "1234"]) expect(keyTail(key)).toBe("••••••••");
  });

  test("never shows more than four characters, nor the whole key", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[!-~]{1,64}$/), (key) => {
        const shown = keyTail(key).slice(8);
        expect(keyTail(key).startsWith("••••••••")).toBe(true);
        expect(shown.length).toBeLessThanOrEqual(4);
        expect(shown.length).toBeLessThan(key.length);
        expect(key.endsWith(shown)).toBe(true);
      }),
    );
  });
});
