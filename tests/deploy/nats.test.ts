import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { read, secrets, withVariables } from "@parley/testkit/deploy.ts";
import { installed } from "@parley/testkit/packages.ts";
import { freePort } from "@parley/testkit/postgres.ts";

interface Service {
  environment: Record<string, string>;
}

const { services } = Bun.YAML.parse(read("deploy/compose.yaml")) as {
  services: Record<string, Service>;
};

/** Three servers with the configuration and the environment of Compose, on local ports. */
async function startServers() {
  const program = installed("nats-server", "nats-server");
  const folder = mkdtempSync(join(tmpdir(), "parley-nats-"));
  const names = Object.keys(services).filter((name) => name.startsWith("nats"));
  const ports = await Promise.all(
    names.map(async () => ({
      client: await freePort(),
      monitor: await freePort(),
      route: await freePort(),
    })),
  );
  const here = (value: string) =>
    names.reduce(
      (text, name, index) => text.replace(`@${name}:6222`, `@127.0.0.1:${ports[index]?.route}`),
      withVariables(value, secrets),
    );
  const servers = names.map((name, index) => {
    const { client, monitor, route } = ports[index] as (typeof ports)[number];
    const file = join(folder, `${name}.conf`);
    const text = read("deploy/kubernetes/base/nats.conf");
    const moved = text
      .replace("4222", `${client}`)
      .replace("8222", `${monitor}`)
      .replace("6222", `${route}`);
    writeFileSync(file, moved);
    const environment = Object.entries(services[name]?.environment ?? {});
    const process = Bun.spawn([program, "--config", file, "--addr", "127.0.0.1"], {
      env: {
        PATH: Bun.env.PATH ?? "",
        HOSTNAME: name,
        ...Object.fromEntries(environment.map(([key, value]) => [key, here(value)])),
      },
      stderr: "pipe",
    });
    return { name, process, client, monitor };
  });
  return {
    servers,
    [Symbol.asyncDispose]: async () => {
      for (const { process } of servers) process.kill("SIGKILL");
      await Promise.all(servers.map(({ process }) => process.exited));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

type Servers = Awaited<ReturnType<typeof startServers>>["servers"];

/** Waits until a server has this number of routes to others. */
async function othersOf({ monitor, process }: Servers[number], most: number): Promise<number> {
  while (process.exitCode === null) {
    const answer = await fetch(`http://127.0.0.1:${monitor}/routez`).catch(() => null);
    const { routes } = ((await answer?.json()) ?? {}) as { routes?: { remote_id: string }[] };
    const others = new Set(routes?.map(({ remote_id }) => remote_id));
    if (others.size >= most) return others.size;
    await Bun.sleep(20);
  }
  throw new Error(`a server ended: ${await new Response(process.stderr).text()}`);
}

/** The answer of a server to a client with this password. */
async function greeting(port: number, pass: string): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  let heard = "";
  const socket = await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      open: (self) => {
        self.write(
          `CONNECT ${JSON.stringify({ user: "parley", pass, verbose: false })}\r\nPING\r\n`,
        );
      },
      data: (_, data) => {
        heard += data.toString();
        const [answer] = /^(PONG|-ERR .*)/m.exec(heard) ?? [];
        if (answer) resolve(answer.trim());
      },
    },
  });
  const answer = await promise;
  socket.end();
  return answer;
}

test("three NATS servers form a cluster, and accept only clients with the password", async () => {
  await using running = await startServers();
  expect(running.servers).toHaveLength(3);
  for (const server of running.servers) {
    expect(await othersOf(server, 2)).toBe(2);
    const ask = (path: string) => fetch(`http://127.0.0.1:${server.monitor}${path}`);
    expect((await ask("/healthz")).status).toBe(200);
    expect(await (await ask("/varz")).json()).toMatchObject({ server_name: server.name });
    expect(await greeting(server.client, secrets.NATS_PASSWORD)).toBe("PONG");
    expect(await greeting(server.client, "another")).toContain("Authorization Violation");
  }
});
