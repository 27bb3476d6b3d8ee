import { expect, test } from "bun:test";
import { readConfig } from "../src/config/config.ts";
import { createHttp, type HttpOptions } from "../src/transport/http.ts";

test("an error outside of a call is logged with the reference that the caller gets, and no secret of the path", async () => {
  const logged: Record<string, unknown>[] = [];
  const err = new Error("out of luck");
  const fetch = createHttp({
    services: {
      config: readConfig({}),
      log: { error: (fields: Record<string, unknown>) => logged.push(fields) },
      exports: { open: () => Promise.reject(err) },
    },
  } as unknown as HttpOptions);
  const headers = { host: "localhost" };
  const response = await fetch(new Request("http://localhost/exports/secret", { headers }), "");
  const request_id = response?.headers.get("x-request-id");
  expect(response?.status).toBe(500);
  expect(await response?.json()).toMatchObject({
    code: "internal",
    description: `internal error, reference ${request_id}`,
  });
  expect(logged).toEqual([{ err, request_id, method: "GET", route: "exports" }]);
});
