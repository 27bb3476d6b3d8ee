import { z } from "zod";
import { timestamp } from "../text/fields.ts";
import { Account } from "./accounts.ts";
import { record } from "./record.ts";

export const ComponentUse = record("ComponentUse", {
  token: z.string().meta({ description: "The action of the button, or `form_submit:<id>`." }),
  by: Account,
  at: timestamp.meta({ description: "When the person last used it." }),
});
export type ComponentUse = z.infer<typeof ComponentUse>;

export const ComponentAction = record("ComponentAction", {
  token: z.string().meta({ description: "The action that was sent." }),
  label: z.string().nullable().meta({
    description:
      "The label of the button; null for a form, and for a token that no button of the message has.",
  }),
  by: Account.meta({ description: "Who pressed the button or submitted the form." }),
});
export type ComponentAction = z.infer<typeof ComponentAction>;
