/** An invalid setting. The message is the sentence that the operator sees. */
export class ConfigError extends Error {
  override name = "ConfigError";
}
