import { useClient } from "@parley/client/react";
import { use } from "react";
import { useAction } from "../lib/action.ts";
import { ActionTarget, useAvailability } from "./action-target.ts";

/** What is submitted with a form, by field name. */
export type Values = Record<string, string | number>;

/** Presses a button or submits a form of the message around it. */
export function useComponentAction(token: string) {
  const client = useClient();
  const target = use(ActionTarget);
  const { busy, error, run } = useAction();
  const submit = async (action: string, fields?: Values) => {
    if (!target) return false;
    const call = { chat_id: target.chatId, message_id: target.messageId, action };
    return run(() => client.sendComponentAction(fields ? { ...call, fields } : call));
  };
  return { ...useAvailability(token), busy, error, submit };
}
