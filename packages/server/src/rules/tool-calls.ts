import type { ToolCall, ToolGrant } from "@parley/protocol";
import { iso, isoOrNull } from "./time.ts";

/** The columns of a call that decide what everybody in its conversation sees. */
export interface ShownCall extends Omit<ToolCall, "id"> {
  readonly uuid: string;
  /** When it expires if nobody decides; null if nobody has to. */
  readonly expires_at: number | null;
}

/** A call as its message shows it. */
export const shownToolCall = (call: ShownCall): ToolCall => ({
  id: call.uuid,
  server: call.server,
  tool: call.tool,
  title: call.title,
  status: currentStatus(call),
  decided_by: call.decided_by,
});

/** Whether nobody has decided about a call in time. That it has expired may not be stored yet. */
export const isOverdue = (
  { status, expires_at }: Pick<ShownCall, "status" | "expires_at">,
  now = Date.now(),
): boolean => status === "pending" && expires_at !== null && expires_at <= now;

const currentStatus = (call: Pick<ShownCall, "status" | "expires_at">): ToolCall["status"] =>
  isOverdue(call) ? "expired" : call.status;

/** A call as it is stored with its message. */
export interface CallOfMessage extends ToolCall {
  /** Null or missing if it does not wait for a decision. */
  readonly expires_at?: number | null;
}

export const callOfMessage = ({ uuid, ...call }: ShownCall): CallOfMessage => ({
  id: uuid,
  ...call,
});

export const shownCallOfMessage = ({ expires_at = null, ...call }: CallOfMessage): ToolCall => ({
  ...call,
  status: currentStatus({ ...call, expires_at }),
});

/** A call with what only some people see of it. */
export interface DetailedCall extends ShownCall {
  /** Who pays for the agent, and decides. */
  readonly owner_id: number;
  readonly arguments: Readonly<Record<string, unknown>>;
  readonly result: string | null;
  readonly error: string | null;
  readonly note: string | null;
  readonly created_at: number;
  readonly decided_at: number | null;
  readonly started_at: number | null;
  readonly finished_at: number | null;
}

/** A call with its arguments. Only the owner of its agent sees what the tool returned. */
export function toolCallDetail(call: DetailedCall, viewer: { readonly id: number }) {
  const isOwner = call.owner_id === viewer.id;
  return {
    ...shownToolCall(call),
    arguments: { ...call.arguments },
    result: isOwner ? call.result : null,
    error: isOwner ? call.error : null,
    note: call.note,
    created_at: iso(call.created_at),
    decided_at: isoOrNull(call.decided_at),
    started_at: isoOrNull(call.started_at),
    finished_at: isoOrNull(call.finished_at),
    expires_at: isoOrNull(call.expires_at),
  };
}

export type ToolPolicy = ToolGrant["policy"];

/** The policy of a grant for the tool as it is now: calls of a tool that has changed need approval. */
export const policyFor = (
  grant: { readonly fingerprint: string; readonly policy: ToolPolicy },
  { fingerprint }: { readonly fingerprint: string },
): ToolPolicy => (fingerprint === grant.fingerprint ? grant.policy : "ask");

/** Whether a call waits for the agent's owner. `isDirect`: in the owner's own conversation with it. */
export const needsApproval = (policy: ToolPolicy, isDirect: boolean): boolean =>
  policy === "ask" || (policy === "direct" && !isDirect);
