import { CodeBlock } from "../markdown/CodeBlock.tsx";
import { ShownOnce } from "../session/ShownOnce.tsx";

interface ShownTokenProps {
  username: string;
  token: string;
  onClose: () => void;
}

/** A new token of an external agent, with a program that uses it. */
export const ShownToken = ({ username, token, onClose }: ShownTokenProps) => (
  <ShownOnce
    title="Your new token"
    what="token"
    secret={token}
    note={`Copy it now: it is not shown again. Whoever has it can answer as @${username}.`}
    onClose={onClose}
  >
    <p className="text-base text-ink-2">
      A program that answers, with the SDK and the token in <code>AGENT_TOKEN</code>:
    </p>
    <CodeBlock code={program} language="js" />
  </ShownOnce>
);

const program = `import { createAgent } from "@parley/client";

createAgent({
  url: "${location.origin}",
  token: process.env.AGENT_TOKEN,
  onTurn: async (turn) => {
    await turn.status("thinking");
    turn.write(\`You wrote: \${turn.message.content}\`);
  },
});`;
