/** Resolves in the next iteration of the event loop, when what has arrived at the sockets was read. */
export const nextIteration = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
