import { describe, expect, test } from "bun:test";
import { type Access, type Operation, operation } from "@parley/protocol";
import { type Bound, createResource } from "../src/calls/bind.ts";
import { type Call, type CallServices, createInvoke } from "../src/calls/invoke.ts";
import { readConfig } from "../src/config/config.ts";
import { Failure } from "../src/rules/failure.ts";

const contract = operation({
  name: "lookUp",
  socket: "things.get",
  summary: "Looks a thing up.",
  errors: ["not_found"],
});

/** An operation with a handler that needs nothing. */
function bind(contract: Operation, handle: () => Promise<void>): Bound {
  const things = createResource<never>();
  things.handle(contract, handle);
  return things.bind({})[0] as Bound;
}

/** Invokes an operation whose handler throws. */
async function codeOf(error: Error, strict: "on" | "off") {
  const logged: unknown[] = [];
  const services = {
    config: readConfig({ PARLEY_STRICT_ERRORS: strict }),
    rates: { operations: { take: () => {} }, costs: { take: () => {} } },
    log: { error: ({ err }: { err: Error }) => logged.push(err.message) },
    audit: { recordOnce: () => {} },
    metrics: { called: () => {} },
  } as unknown as CallServices;
  const bound = bind(contract, () => Promise.reject(error));
  const call = {
    name: contract.name,
    origin: { address: "", network: "", user_agent: null },
    reference: () => "reference",
    authenticate: () => ({ kind: "session", account: {}, session_id: "" }),
    input: () => ({}),
  } as unknown as Call;
  const invoke = createInvoke(new Map<string, Bound>([[contract.name, bound]]), services);
  const outcome = await invoke(call);
  return { code: outcome.ok ? "ok" : outcome.failure.code, logged };
}

describe("a failure that the contract does not declare", () => {
  const undeclared = new Failure("conflict", "conflict: it is taken");

  test("is answered as it is by default", async () => {
    expect(await codeOf(undeclared, "off")).toEqual({ code: "conflict", logged: [] });
  });

  test("is an internal error where errors are strict", async () => {
    const logged = ["lookUp does not declare conflict"];
    expect(await codeOf(undeclared, "on")).toEqual({ code: "internal", logged });
  });
});

describe("the access level of an operation", () => {
  const person = { kind: "session", account: { id: 1, username: "ada" }, session_id: "" };
  const operator = { ...person, account: { id: 2, username: "grace" } };
  const key = { name: "shop" };
  const callers = {
    person,
    operator,
    delegate: { ...person, kind: "delegate", key },
    "delegate of an operator": { ...operator, kind: "delegate", key },
    "service key": { kind: "service", key },
  };

  /** Which callers may call an operation of a level. */
  async function admitted(access: Access) {
    const services = {
      config: readConfig({}),
      store: {
        read: (unit: (tx: unknown) => unknown) => unit({ isOperator: (id: number) => id === 2 }),
      },
      rates: {
        operations: { take: () => {} },
        services: { take: () => {} },
        costs: { take: () => {} },
      },
      audit: { recordOnce: () => {}, write: () => {} },
      metrics: { called: () => {} },
    } as unknown as CallServices;
    const bound = bind(
      operation({ name: "lookUp", socket: "things.get", summary: "Looks a thing up.", access }),
      () => Promise.resolve(),
    );
    const invoke = createInvoke(new Map<string, Bound>([[contract.name, bound]]), services);
    const outcomes = Object.entries(callers).map(async ([name, caller]) => {
      const outcome = await invoke({
        name: contract.name,
        origin: { address: "", network: "", user_agent: null },
        reference: () => "reference",
        authenticate: () => caller,
        input: () => ({}),
      } as unknown as Call);
      if (outcome.ok) return [name];
      expect(outcome.failure.code).toBe("forbidden");
      return [];
    });
    return (await Promise.all(outcomes)).flat();
  }

  test.each([
    ["session", ["person", "operator", "delegate", "delegate of an operator"]],
    ["service", ["service key"]],
    ["operator", ["operator", "delegate of an operator", "service key"]],
    ["agent", []],
  ] as const)("%s admits %p", async (access, names) => {
    expect(await admitted(access)).toEqual([...names]);
  });
});

describe("where errors are strict, an operation may answer", () => {
  for (const code of ["not_found", "unauthorized", "bad_request", "payload_too_large"] as const) {
    test(code, async () => {
      expect(await codeOf(new Failure(code, code), "on")).toEqual({ code, logged: [] });
    });
  }
});
