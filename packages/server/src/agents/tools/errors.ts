/** Thrown when a contact did not end in time. */
/** The server has ended its answer, and the result is not in it. */
export class NoResult extends Error {}

export class ContactTimeout extends Error {
  override name = "ContactTimeout";
}

/** Thrown when a program that failed to start is not to be started again yet. */
export class ContactDelayed extends Error {
  override name = "ContactDelayed";
}

/** Thrown when a server asks for something that no form can ask. The server is told why. */
export class FormRefused extends Error {
  override name = "FormRefused";
  /** Of JSON-RPC: the parameters are invalid. */
  readonly code = -32_602;
}

/** Thrown when no further connection may be opened. */
export class PoolFull extends Error {
  override name = "PoolFull";
}
