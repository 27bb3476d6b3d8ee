import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { installed } from "./packages.ts";
import { freePort } from "./postgres.ts";

/** A real NATS server. */
export interface TestNats extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** Kills it. */
  stop(): Promise<void>;
  /** Starts it again on the same port. */
  start(): Promise<void>;
  /** It neither answers nor closes its connections, until `resume`. */
  pause(): void;
  resume(): void;
}

/** `configuration` is added to the configuration file, such as TLS or users. */
export async function startNats(configuration = ""): Promise<TestNats> {
  const program = installed("nats-server", "nats-server");
  const folder = mkdtempSync(join(tmpdir(), "parley-nats-"));
  const file = join(folder, "nats.conf");
  const port = await freePort();
  writeFileSync(file, `listen: "127.0.0.1:${port}"\n${configuration}`);
  let server = await spawn();

  async function spawn() {
    const child = Bun.spawn([program, "-c", file], { stdout: "ignore", stderr: "pipe" });
    while (!(await isListening(port))) {
      if (child.exitCode !== null) {
        throw new Error(`nats-server did not start: ${await new Response(child.stderr).text()}`);
      }
      await Bun.sleep(10);
    }
    return child;
  }

  async function stop(): Promise<void> {
    server.kill("SIGKILL");
    await server.exited;
  }

  return {
    url: `nats://127.0.0.1:${port}`,
    port,
    get pid() {
      return server.pid;
    },
    stop,
    async start() {
      server = await spawn();
    },
    pause: () => server.kill("SIGSTOP"),
    resume: () => server.kill("SIGCONT"),
    async [Symbol.asyncDispose]() {
      await stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A NATS server sends its INFO line first. */
const isListening = (port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("data", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
