import type { Socket } from "bun";

/** A TCP proxy between browser and server, to interrupt the connection. */
export interface Proxy extends Disposable {
  readonly url: string;
  /** Closes all connections and refuses new ones. */
  disconnect(): void;
  /** Accepts connections again. */
  reconnect(): void;
}

interface ConnectionState {
  /** The other side; null until it is connected. */
  peer: Socket<ConnectionState> | null;
  /** Data that could not be written yet. */
  pending: Uint8Array[];
}

export function startProxy(target: string): Proxy {
  const { hostname, port } = new URL(target);
  const open = new Set<Socket<ConnectionState>>();
  let isConnected = true;
  const listener = Bun.listen<ConnectionState>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(near) {
        near.data = { peer: null, pending: [] };
        if (!isConnected) return void near.terminate();
        open.add(near);
        void Bun.connect<ConnectionState>({
          hostname,
          port: Number(port),
          socket: {
            open(far) {
              far.data = { peer: near, pending: [] };
              near.data.peer = far;
              open.add(far);
              for (const chunk of near.data.pending) forward(near, chunk);
              near.data.pending = [];
            },
            data: forward,
            drain,
            close: closePeer,
          },
        });
      },
      data: forward,
      drain,
      close: closePeer,
    },
  });
  return {
    url: `http://127.0.0.1:${listener.port}`,
    disconnect() {
      isConnected = false;
      for (const socket of open) socket.terminate();
      open.clear();
    },
    reconnect() {
      isConnected = true;
    },
    [Symbol.dispose]: () => listener.stop(true),
  };
}

/** Writes data to the peer; what the peer does not accept yet is written on `drain`. */
function forward(from: Socket<ConnectionState>, chunk: Uint8Array): void {
  const to = from.data.peer;
  if (!to) return void from.data.pending.push(Uint8Array.from(chunk));
  if (to.data.pending.length > 0) return void to.data.pending.push(Uint8Array.from(chunk));
  const written = to.write(chunk);
  if (written < chunk.length) to.data.pending.push(Uint8Array.from(chunk.subarray(written)));
}

function drain(to: Socket<ConnectionState>): void {
  if (!to.data.peer) return;
  for (let chunk = to.data.pending.shift(); chunk; chunk = to.data.pending.shift()) {
    const written = to.write(chunk);
    if (written < chunk.length) return void to.data.pending.unshift(chunk.subarray(written));
  }
}

const closePeer = (socket: Socket<ConnectionState>) => void socket.data.peer?.end();
