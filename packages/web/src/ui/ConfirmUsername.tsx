import { TextField } from "./Field.tsx";

/** The field `username`, into which a username is typed to confirm what happens to its account. */
export const ConfirmUsername = ({ username }: { username: string }) => (
  <TextField
    label={`Type ${username} to confirm`}
    name="username"
    required
    pattern={username}
    title={`Please type «${username}».`}
    autoCapitalize="none"
    autoComplete="off"
    spellCheck={false}
    data-autofocus
  />
);
