export interface Check {
  readonly name: string;
  /** A warning does not keep the server from working. */
  readonly status: "ok" | "warning" | "failed";
  readonly message: string;
  /** What the operator can do about it. Empty if it is in order. */
  readonly todo: string;
}

const check =
  (status: Check["status"]) =>
  (name: string, message: string, todo = ""): Check => ({ name, status, message, todo });

export const ok = check("ok");
export const warning = check("warning");
export const failed = check("failed");

/** A remedy that is the end of a sentence elsewhere, as a sentence of its own. */
export const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
