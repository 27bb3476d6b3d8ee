/** Keys that the built-in sandbox model answers. They never leave the process. */
export const isSandboxKey = (key: string) => key.trimStart().startsWith("sandbox");
