import type { Token, Tokens } from "marked";
import { createContext, type ReactNode, use } from "react";

/** Usernames that the message mentions; shown as such wherever they stand in its text. */
export const MentionContext = createContext<{ names: readonly string[]; me: string }>({
  names: [],
  me: "",
});

export function Inline({ tokens }: { tokens: Token[] | undefined }): ReactNode {
  return tokens?.map((token, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: text grows at its end, so places are stable
    <InlineToken key={index} token={token} />
  ));
}

function InlineToken({ token }: { token: Token }): ReactNode {
  switch (token.type) {
    case "text": {
      const { tokens, text } = token as Tokens.Text;
      return tokens ? <Inline tokens={tokens} /> : <Text text={decoded(text)} />;
    }
    case "escape":
      return (token as Tokens.Escape).text;
    case "strong":
      return (
        <strong className="font-semibold">
          <Inline tokens={(token as Tokens.Strong).tokens} />
        </strong>
      );
    case "em":
      return (
        <em>
          <Inline tokens={(token as Tokens.Em).tokens} />
        </em>
      );
    case "del":
      return (
        <del>
          <Inline tokens={(token as Tokens.Del).tokens} />
        </del>
      );
    case "codespan":
      return <code>{(token as Tokens.Codespan).text}</code>;
    case "br":
      return <br />;
    case "link":
      return <Anchor token={token as Tokens.Link} />;
    case "image":
      // An image would be loaded from wherever a message says: its address is shown instead.
      return <Outside href={(token as Tokens.Image).href}>{(token as Tokens.Image).text}</Outside>;
    default:
      return token.raw;
  }
}

function Anchor({ token }: { token: Tokens.Link }) {
  return (
    <Outside href={token.href}>
      <Inline tokens={token.tokens} />
    </Outside>
  );
}

const SAFE = /^(https?:\/\/|mailto:)/i;

function Outside({ href, children }: { href: string; children: ReactNode }) {
  if (!SAFE.test(href)) return <span>{children}</span>;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow">
      {children || href}
    </a>
  );
}

const named: Record<string, string> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: "\u00a0",
};

/** Character references, which the lexer leaves as they are. */
function decoded(text: string): string {
  if (!text.includes("&")) return text;
  return text.replace(
    /&(?:#(\d{1,7})|#x([\da-f]{1,6})|(\w{2,6}));/gi,
    (whole, decimal, hex, name) => {
      if (name !== undefined) return named[name] ?? whole;
      const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal);
      return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : "\ufffd";
    },
  );
}

const HANDLE = /(@[a-z0-9_]+(?::[a-z][a-z0-9_-]*)?)/gi;

function Text({ text }: { text: string }): ReactNode {
  const { names, me } = use(MentionContext);
  if (names.length === 0 || !text.includes("@")) return text;
  return text.split(HANDLE).map((part, index) => {
    const name = part.slice(1).toLowerCase();
    if (index % 2 === 0 || !names.includes(name)) return part;
    const look = name === me ? "rounded-xs bg-warn-soft text-warn" : "text-accent";
    return (
      // biome-ignore lint/suspicious/noArrayIndexKey: pieces of one text have no other name
      <span key={index} dir="ltr" className={`font-medium ${look}`}>
        {part}
      </span>
    );
  });
}
