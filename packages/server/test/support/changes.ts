import type { Delivery, EventFrame } from "@parley/protocol";
import type { Bus } from "../../src/changes/bus.ts";
import type { Audience, Change, EventChange, StreamPart } from "../../src/changes/change.ts";

/** An event described by its frame. */
export interface EventSpec extends Partial<Omit<EventChange, "kind" | "name" | "data" | "stream">> {
  frame: EventFrame;
  to: Audience;
}

export function event({ frame, ...rest }: EventSpec): EventChange {
  return {
    kind: "event",
    name: frame.method,
    delivery: deliveryOf(frame, rest),
    data: JSON.stringify(frame),
    at: frame.at,
    stream: streamPart(frame),
    account: frame.method === "events.accountUpdated" ? frame.params : undefined,
    ...rest,
  };
}

function deliveryOf({ at }: EventFrame, { to, id }: Omit<EventSpec, "frame">): Delivery {
  if (at) return "conversation" in to ? "counted" : "standing";
  return id === undefined ? "transient" : "durable";
}

function streamPart({ method, params }: EventFrame): StreamPart | undefined {
  if (method === "events.messageNew" && params.finalized_at === null) {
    return { message: params.id, from: 0, to: 0, begins: true, ends: false };
  }
  if (method === "events.messageDelta") {
    const from = params.offset - Buffer.byteLength(params.delta);
    return { message: params.id, from, to: params.offset, begins: false, ends: false };
  }
  if (method === "events.messageComplete") {
    const to = Buffer.byteLength(params.content);
    return { message: params.id, from: 0, to, begins: false, ends: true };
  }
  return undefined;
}

/** Publishes changes, or events by their frames, as if the node of the bus had committed them. */
export function publishAll(
  { bus }: { bus: Pick<Bus, "publish"> },
  changes: readonly (Change | EventSpec)[],
): void {
  for (const change of changes) bus.publish("frame" in change ? event(change) : change);
}

/** Sends a transient event. */
export const signal = (
  { bus }: { bus: Pick<Bus, "publish"> },
  frame: EventFrame,
  to: Audience,
  exceptUser?: string,
) => bus.publish(event({ frame, to, delivery: "transient", exceptUser }));
