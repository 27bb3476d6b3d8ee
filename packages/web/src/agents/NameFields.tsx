import { useState } from "react";
import { TextField } from "../ui/Field.tsx";

/** The name of a new agent, and its handle, which follows the name until it is changed. */
export function NameFields({ owner }: { owner: string }) {
  const [name, setName] = useState("");
  const [handle, setHandle] = useState<string | null>(null);
  const shown = handle ?? handleFrom(name);
  return (
    <div className="grid items-start gap-4 sm:grid-cols-2">
      <TextField
        label="Name"
        name="display_name"
        data-autofocus
        placeholder="Research helper"
        value={name}
        required
        maxLength={64}
        autoComplete="off"
        onChange={({ target }) => setName(target.value)}
      />
      <TextField
        label="Handle"
        name="name"
        hint={`@${owner}:${shown || "handle"} · it cannot be changed later`}
        value={shown}
        required
        minLength={2}
        maxLength={32}
        pattern="[a-z][a-z0-9_\-]{1,31}"
        title="Lower-case letters, digits, _ and -, beginning with a letter."
        autoComplete="off"
        autoCapitalize="none"
        spellCheck={false}
        onChange={({ target }) => setHandle(target.value.toLowerCase())}
      />
    </div>
  );
}

const handleFrom = (name: string) =>
  name
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^[^a-z]+|-+$/g, "")
    .slice(0, 32);
