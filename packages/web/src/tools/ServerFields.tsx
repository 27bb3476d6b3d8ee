import { codeOf, describeError } from "../lib/errors.ts";
import { TextField } from "../ui/Field.tsx";

export const ServerName = ({ initial = "" }: { initial?: string }) => (
  <TextField
    label="Name"
    name="name"
    required
    maxLength={64}
    autoComplete="off"
    placeholder="Calendar"
    defaultValue={initial}
    hint="Everybody in a conversation sees it beside the calls of your agents."
  />
);

interface ServerTokenProps {
  placeholder: string;
  /** What an empty field means. */
  whenEmpty: string;
}

export const ServerToken = ({ placeholder, whenEmpty }: ServerTokenProps) => (
  <TextField
    label="Token"
    name="token"
    type="password"
    maxLength={4096}
    autoComplete="off"
    placeholder={placeholder}
    hint={`Sent to this server alone, sealed here, and never shown again. ${whenEmpty}`}
  />
);

/** The server refuses a name that is taken without naming the field. */
export const explainServerProblem = (error: unknown): Record<string, string> =>
  codeOf(error) === "conflict" && /name/i.test(describeError(error))
    ? { name: `${describeError(error)}.` }
    : {};
