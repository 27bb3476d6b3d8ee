import { codeOf, concerns, describeError } from "../lib/errors.ts";
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

export const ServerAddress = ({ initial = "" }: { initial?: string }) => (
  <TextField
    label="Address"
    name="url"
    type="url"
    required
    maxLength={2048}
    autoComplete="off"
    spellCheck={false}
    placeholder="https://tools.example.com/mcp"
    defaultValue={initial}
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

export const explainServerProblem = (error: unknown): Record<string, string> =>
  codeOf(error) === "conflict" && concerns(error, "name")
    ? { name: `${describeError(error)}.` }
    : {};
