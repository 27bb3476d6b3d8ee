/** Test keys never leave the process: the built-in sandbox model answers them. */
export const isSandboxKey = (key: string) => key.trimStart().startsWith("sandbox");
