import type { Bus, Delivered, Interest } from "./bus.ts";
import { createStreams } from "./streams.ts";

/** The bus of a single node: delivers changes to this node at once. */
export function createMemoryBus(): Bus {
  let listener: (change: Delivered) => void = () => {};
  const answers = createStreams({ deliver: (change) => listener(change) });
  const publish: Bus["publish"] = (change) =>
    change.kind === "event" ? answers.receive(change) : listener(change);
  return {
    publish,
    onChange: (handler) => {
      listener = handler;
    },
    interest: () => everything,
    // The log is read for changes of other processes only, such as a command of an operator.
    isMissing: () => true,
    replay: publish,
    lose: () => listener({ kind: "events_lost" }),
    onGap: () => {},
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
