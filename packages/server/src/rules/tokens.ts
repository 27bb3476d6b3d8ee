/** The store has only the hash of a token. */
export const hashToken = (token: string) =>
  new Bun.CryptoHasher("sha256").update(token).digest("hex");

/** The form of a service key that PARLEY_SERVICE_KEY_FILE gives. */
export const SERVICE_KEY_FORM = /^pls_[A-Za-z0-9_-]{32,256}$/;
