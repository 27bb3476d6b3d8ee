import { handlesIn } from "@parley/protocol/text/handles";
import { createContext, type ReactNode, use } from "react";
import type { Inline as InlineNode } from "./parse.ts";

/** Usernames that the message mentions; their handles are highlighted. */
export const MentionContext = createContext<{ names: readonly string[]; me: string }>({
  names: [],
  me: "",
});

export function Inline({ tokens }: { tokens: InlineNode[] }): ReactNode {
  return tokens.map((token, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: text grows at its end, so places are stable
    <InlineToken key={index} token={token} />
  ));
}

function InlineToken({ token }: { token: InlineNode }): ReactNode {
  switch (token.type) {
    case "text":
      return <Text text={token.text} />;
    case "strong":
      return (
        <strong className="font-semibold">
          <Inline tokens={token.tokens} />
        </strong>
      );
    case "em":
      return (
        <em>
          <Inline tokens={token.tokens} />
        </em>
      );
    case "del":
      return (
        <del>
          <Inline tokens={token.tokens} />
        </del>
      );
    case "codespan":
      return <code>{token.text}</code>;
    case "br":
      return <br />;
    case "link":
      return (
        <ExternalLink href={token.href}>
          <Inline tokens={token.tokens} />
        </ExternalLink>
      );
    case "image":
      // A link instead of the image: loading it would tell a third party who reads the message.
      return <ExternalLink href={token.href}>{token.text}</ExternalLink>;
  }
}

const SAFE = /^(https?:\/\/|mailto:)/i;

function ExternalLink({ href, children }: { href: string; children: ReactNode }) {
  if (!SAFE.test(href)) return <span>{children}</span>;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow">
      {children || href}
    </a>
  );
}

function Text({ text }: { text: string }): ReactNode {
  const { names, me } = use(MentionContext);
  const handles = handlesIn(text).filter(({ username }) => names.includes(username));
  if (handles.length === 0) return text;
  const parts: ReactNode[] = [];
  let read = 0;
  for (const { start, end, username } of handles) {
    const look = username === me ? "rounded-xs bg-warn-soft text-warn" : "text-accent";
    parts.push(
      text.slice(read, start),
      <span key={start} dir="ltr" className={`font-medium ${look}`}>
        {text.slice(start, end)}
      </span>,
    );
    read = end;
  }
  return [...parts, text.slice(read)];
}
