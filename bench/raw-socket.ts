/**
 * A WebSocket client on plain TCP for generators of load. Bun's own decodes every frame to a string,
 * which costs more than a fast server spends on it: the generator would measure itself.
 */
const [TEXT, CLOSE, PING, PONG] = [1, 8, 9, 10];
/** A mask of zeros leaves the payload as it is. */
const MASK = Buffer.alloc(4);
const [LENGTH_16, LENGTH_64] = [126, 127];

export interface RawSocket {
  send(text: string): void;
  end(): void;
}

/** Resolves after the first frame, which is `events.hello`. `onFrame` must not keep the frame. */
export function connect(
  url: string,
  token: string,
  onFrame: (frame: Buffer) => void,
): Promise<RawSocket> {
  const { hostname, port } = new URL(url);
  const opened = Promise.withResolvers<RawSocket>();
  let unread: Buffer = Buffer.alloc(0);
  let unwritten: Buffer = Buffer.alloc(0);
  let [isUpgraded, isOpen, isEnded] = [false, false, false];

  const write = (bytes: Buffer) => {
    unwritten = unwritten.length === 0 ? bytes : Buffer.concat([unwritten, bytes]);
    unwritten = unwritten.subarray(socket?.write(unwritten) ?? 0);
  };
  const handle = (opcode: number, payload: Buffer) => {
    if (opcode === PING) return write(encoded(PONG, payload));
    if (opcode === CLOSE) return fail(`closed with ${payload.readUInt16BE(0)}`);
    if (isOpen) return onFrame(payload);
    isOpen = true;
    opened.resolve({
      send: (text) => write(encoded(TEXT, Buffer.from(text))),
      end: () => {
        isEnded = true;
        socket?.end();
      },
    });
  };
  const read = (chunk: Buffer) => {
    unread = unread.length === 0 ? chunk : Buffer.concat([unread, chunk]);
    if (!isUpgraded) {
      const end = unread.indexOf("\r\n\r\n");
      if (end === -1) return;
      if (!unread.toString("latin1").startsWith("HTTP/1.1 101")) fail(unread.toString("latin1"));
      isUpgraded = true;
      unread = unread.subarray(end + 4);
    }
    let at = 0;
    while (at + 2 <= unread.length) {
      const [first = 0, short = 0] = [unread[at], unread[at + 1]];
      const header = short === LENGTH_64 ? 10 : short === LENGTH_16 ? 4 : 2;
      if (at + header > unread.length) break;
      const start = at + header;
      const length =
        header === 2
          ? short
          : header === 4
            ? unread.readUInt16BE(at + 2)
            : unread.readUInt32BE(at + 6);
      if (start + length > unread.length) break;
      handle(first & 0xf, unread.subarray(start, start + length));
      at = start + length;
    }
    // The next chunk may overwrite the memory of this one.
    unread = at === unread.length ? Buffer.alloc(0) : Buffer.from(unread.subarray(at));
  };
  function fail(why: string): void {
    if (isEnded) return;
    if (isOpen) throw new Error(why);
    opened.reject(new Error(why));
  }

  let socket: Bun.Socket | undefined;
  void Bun.connect({
    hostname,
    port: Number(port),
    socket: {
      data: (_, chunk) => read(chunk),
      drain: () => write(Buffer.alloc(0)),
      close: () => fail("the connection was closed"),
    },
  }).then((connected) => {
    socket = connected;
    write(
      Buffer.from(
        `GET /api/ws?token=${token} HTTP/1.1\r\nHost: ${hostname}:${port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${Buffer.alloc(16).toString("base64")}\r\n\r\n`,
      ),
    );
  }, opened.reject);
  return opened.promise;
}

function encoded(opcode: number, payload: Buffer): Buffer {
  const { length } = payload;
  const header = Buffer.alloc(length < LENGTH_16 ? 2 : 4);
  header[0] = 0x80 | opcode;
  header[1] = 0x80 | (length < LENGTH_16 ? length : LENGTH_16);
  if (length >= LENGTH_16) header.writeUInt16BE(length, 2);
  return Buffer.concat([header, MASK, payload]);
}
