import type { Socket } from "bun";

/** A wire between browser and server that can be cut and mended. */
export interface Wire extends Disposable {
  readonly url: string;
  cut(): void;
  mend(): void;
}

interface Ends {
  other: Socket<Ends> | null;
  waiting: Uint8Array[];
}

export function wireTo(target: string): Wire {
  const { hostname, port } = new URL(target);
  const open = new Set<Socket<Ends>>();
  let whole = true;
  const listener = Bun.listen<Ends>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(near) {
        near.data = { other: null, waiting: [] };
        if (!whole) return void near.terminate();
        open.add(near);
        void Bun.connect<Ends>({
          hostname,
          port: Number(port),
          socket: {
            open(far) {
              far.data = { other: near, waiting: [] };
              near.data.other = far;
              open.add(far);
              for (const chunk of near.data.waiting) pass(near, chunk);
              near.data.waiting = [];
            },
            data: pass,
            drain,
            close: part,
          },
        });
      },
      data: pass,
      drain,
      close: part,
    },
  });
  return {
    url: `http://127.0.0.1:${listener.port}`,
    cut() {
      whole = false;
      for (const socket of open) socket.terminate();
      open.clear();
    },
    mend() {
      whole = true;
    },
    [Symbol.dispose]: () => listener.stop(true),
  };
}

/** What the other end does not take at once waits for it. */
function pass(from: Socket<Ends>, chunk: Uint8Array): void {
  const to = from.data.other;
  if (!to) return void from.data.waiting.push(Uint8Array.from(chunk));
  if (to.data.waiting.length > 0) return void to.data.waiting.push(Uint8Array.from(chunk));
  const written = to.write(chunk);
  if (written < chunk.length) to.data.waiting.push(Uint8Array.from(chunk.subarray(written)));
}

function drain(to: Socket<Ends>): void {
  if (!to.data.other) return;
  for (let chunk = to.data.waiting.shift(); chunk; chunk = to.data.waiting.shift()) {
    const written = to.write(chunk);
    if (written < chunk.length) return void to.data.waiting.unshift(chunk.subarray(written));
  }
}

const part = (socket: Socket<Ends>) => void socket.data.other?.end();
