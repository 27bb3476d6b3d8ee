import manifest from "../../package.json" with { type: "json" };

/** The version of this server. The executable contains it. */
export const VERSION: string = manifest.version;
