import type { Account } from "@parley/protocol";
import { createContext, use } from "react";

/** Whoever is signed in; everything inside of the shell has it. */
export const MeContext = createContext<Account>({
  username: "",
  kind: "human",
  display_name: "",
  version: 0,
});

export const useSelf = () => use(MeContext);
