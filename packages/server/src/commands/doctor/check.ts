/** The result of one check. */
export interface Check {
  readonly name: string;
  /** A warning does not keep the server from working. */
  readonly status: "ok" | "warning" | "failed";
  /** What was found. */
  readonly message: string;
  /** What the operator can do about it. Empty if it is in order. */
  readonly todo: string;
}

export const ok = (name: string, message: string): Check => ({
  name,
  status: "ok",
  message,
  todo: "",
});

export const warning = (name: string, message: string, todo: string): Check => ({
  name,
  status: "warning",
  message,
  todo,
});

export const failed = (name: string, message: string, todo: string): Check => ({
  name,
  status: "failed",
  message,
  todo,
});

/** A remedy that is the end of a sentence elsewhere, as a sentence of its own. */
export const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
