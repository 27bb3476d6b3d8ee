import { readFileSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, type TLSSocket } from "node:tls";

interface Options {
  host?: string;
  port?: number;
  /** Paths of a certificate and its key: the server then speaks TLS. */
  certificate?: { cert: string; key: string };
}

/** What a client sent in its first packet, and the name that it asked for in the TLS handshake. */
interface Received {
  text: string;
  serverName: string | null;
}

/**
 * A server that answers each connection with whatever bytes the test writes, valid HTTP or not. The
 * answer is written when the first bytes of the request have come.
 */
export async function rawServer(answer: (socket: Socket) => void, options: Options = {}) {
  const { host = "127.0.0.1", port = 0, certificate } = options;
  const received: Received[] = [];
  const sockets = new Set<Socket>();
  const ended = Promise.withResolvers<void>();
  const onConnection = (socket: Socket) => {
    sockets.add(socket);
    // A client that gives up resets the connection, which is often what the test is about.
    socket.on("error", () => socket.destroy());
    socket.once("close", ended.resolve);
    socket.once("data", (data) => {
      const { servername } = socket as Partial<TLSSocket>;
      received.push({ text: data.toString(), serverName: servername || null });
      answer(socket);
    });
  };
  const server: Server = certificate
    ? createTlsServer(
        { cert: readFileSync(certificate.cert), key: readFileSync(certificate.key) },
        onConnection,
      )
    : createServer(onConnection);
  await new Promise<void>((resolve) => server.listen(port, host, resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return {
    port: address.port,
    received,
    connections: () => sockets.size,
    /** Resolves when a client has closed its connection. */
    closed: ended.promise,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
