import { renameSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { InputOf, OperationName, OutputOf } from "@parley/protocol";
import { CallFailed, checkedResult, post } from "./client.ts";
import type { Environment } from "./server.ts";

const KEY = `pls_${"test-key-".repeat(5)}`;

/** A setting that gives the server a service key, with which `Backend` calls. */
export function serviceKeySetting(): Environment {
  const file = join(tmpdir(), "parley-test-service-key");
  // Servers of other test processes read it meanwhile: it must not be empty at any time.
  const unfinished = `${file}-${process.pid}`;
  writeFileSync(unfinished, `${KEY}\n`, { mode: 0o600 });
  renameSync(unfinished, file);
  return { PARLEY_SERVICE_KEY_FILE: file };
}

/** The backend of a product: calls with a service key, for a person or in its own right. */
export class Backend {
  readonly url: string;
  readonly key: string;
  readonly actsFor: string | undefined;

  constructor(url: string, { key = KEY, actsFor }: { key?: string; actsFor?: string } = {}) {
    this.url = url;
    this.key = key;
    this.actsFor = actsFor;
  }

  /** The same backend, acting for a person: a username, or `id:` and an external id. */
  as(actsFor: string): Backend {
    return new Backend(this.url, { key: this.key, actsFor });
  }

  /** A call. Failures are returned, not thrown. */
  post(name: string, input: unknown = {}, headers: Record<string, string> = {}) {
    const acts = this.actsFor === undefined ? {} : { "x-parley-as": utf8(this.actsFor) };
    return post(this.url, name, input, this.key, { ...acts, ...headers });
  }

  async call<Name extends OperationName>(
    name: Name,
    input?: InputOf<Name>,
  ): Promise<OutputOf<Name>> {
    const { body } = await this.post(name, input);
    if (!body.ok) throw new CallFailed(body);
    return checkedResult(name, body.result);
  }
}

/** The UTF-8 bytes of a text as the characters of a header. */
const utf8 = (text: string) => Buffer.from(text).toString("latin1");
