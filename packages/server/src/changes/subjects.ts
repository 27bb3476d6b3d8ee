/** The NATS subjects of one installation. */
export type Subjects = ReturnType<typeof subjects>;

/** `prefix` keeps installations apart that share a NATS. */
export const subjects = (prefix: string) => ({
  conversation: (id: string) => `${prefix}.c.${id}`,
  user: (username: string) => `${prefix}.u.${username}`,
  node: (id: string) => `${prefix}.n.${id}`,
  nodes: `${prefix}.nodes`,
});
