import type { Bus, Delivered, Interest } from "./bus.ts";
import { streams } from "./streams.ts";

/** One node alone: what is published is delivered here, at once, and nothing is missed. */
export function memoryBus(): Bus {
  let listener: (change: Delivered) => void = () => {};
  const answers = streams({ deliver: (packet) => listener(packet) });
  return {
    publish: (packet) => (packet.kind === "event" ? answers.receive(packet) : listener(packet)),
    onChange: (handler) => {
      listener = handler;
    },
    interest: () => everything,
    ready: async () => {},
    close: async () => {},
  };
}

const everything: Interest = {
  follow: async () => false,
  begin: () => {},
  join: () => {},
  leave: () => {},
  has: () => true,
  end: () => {},
};
