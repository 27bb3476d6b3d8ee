import type { Account } from "@parley/protocol";
import { createContext, use } from "react";

/** The account that is signed in; set inside of the shell. */
export const MeContext = createContext<Account>({
  username: "",
  kind: "human",
  display_name: "",
  version: 0,
});

export const useSelf = () => use(MeContext);
