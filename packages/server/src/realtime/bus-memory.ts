import type { Bus, Packet } from "./bus.ts";

/** One node alone: what is published is delivered here, at once. */
export function memoryBus(): Bus {
  let listener: (packet: Packet) => void = () => {};
  return {
    publish: (packet) => listener(packet),
    onPacket: (handler) => {
      listener = handler;
    },
    ready: async () => {},
    close: async () => {},
  };
}
