/** Delays replies on a socket, so that they arrive after events that the server sent later. */
export class LateReplies {
  private readonly held: (() => void)[] = [];
  private waiting: (() => void) | undefined;
  private isHeld = (_: string) => false;
  private delayMs = () => 0;

  /** For the client's `WebSocket` option. */
  readonly WebSocket: typeof WebSocket;

  constructor() {
    const receive = (data: unknown, deliver: () => void) => this.receive(data, deliver);
    this.WebSocket = class extends WebSocket {
      constructor(url: string | URL, protocols?: string | string[]) {
        super(url, protocols);
        const listen = this.addEventListener.bind(this);
        const listenLate = (type: string, listener: (event: Event) => void) =>
          listen(type, (event) => {
            if (event instanceof MessageEvent) receive(event.data, () => listener(event));
            else listener(event);
          });
        this.addEventListener = listenLate as WebSocket["addEventListener"];
      }
    };
  }

  /** Holds at most `count` replies that contain the text until `release`. Resolves when one is held. */
  hold(text: string, count = Number.POSITIVE_INFINITY): Promise<void> {
    this.isHeld = (reply) => reply.includes(text) && this.held.length < count;
    return new Promise((resolve) => {
      this.waiting = resolve;
    });
  }

  release(): void {
    this.isHeld = () => false;
    for (const deliver of this.held.splice(0)) deliver();
  }

  /** Sets the delay of each reply. */
  delay(ms: () => number): void {
    this.delayMs = ms;
  }

  private receive(data: unknown, deliver: () => void): void {
    const isReply = "ok" in JSON.parse(String(data));
    const ms = isReply ? this.delayMs() : 0;
    if (ms > 0) setTimeout(deliver, ms);
    else if (isReply && this.isHeld(String(data))) {
      this.held.push(deliver);
      this.waiting?.();
    } else deliver();
  }
}
