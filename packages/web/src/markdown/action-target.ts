import { createContext } from "react";

/** The message whose components are shown; null where they are only to be looked at. */
export const ActionTarget = createContext<{ chatId: string; messageId: string } | null>(null);
