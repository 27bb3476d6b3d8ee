import { useEffect } from "react";
import { usePolicy } from "../lib/policy.ts";
import { sharedValue } from "../lib/shared-value.ts";

export interface FileLimits {
  file_bytes: number;
  /** Zero: the server or the person's policy allows no files, and no pictures of people and groups. */
  files_per_message: number;
}

/** The defaults of the server, until its own are known. */
const limits = sharedValue<FileLimits>({ file_bytes: 26_214_400, files_per_message: 10 });
let isLoaded = false;

/** How many files a message takes, and how large they may be. */
export function useFileLimits(): FileLimits {
  useEffect(() => {
    if (isLoaded) return;
    isLoaded = true;
    loadLimits().catch(() => {
      // The next composer tries again.
      isLoaded = false;
    });
  }, []);
  const known = limits.use();
  return usePolicy().files ? known : { ...known, files_per_message: 0 };
}

async function loadLimits(): Promise<void> {
  const response = await fetch(`${location.origin}/api/limits`);
  const { result }: { result: FileLimits } = await response.json();
  limits.set({ file_bytes: result.file_bytes, files_per_message: result.files_per_message });
}
