import type { AnchorHTMLAttributes, MouseEvent, Ref } from "react";
import { navigate } from "../lib/router.ts";

interface LinkProps extends AnchorHTMLAttributes<HTMLAnchorElement> {
  to: string;
  ref?: Ref<HTMLAnchorElement>;
}

/** A link inside the client. It is a real link, so that it can be opened in a new tab. */
export function Link({ to, onClick, ...rest }: LinkProps) {
  const follow = (event: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(event);
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    navigate(to);
  };
  return <a href={to} {...rest} onClick={follow} />;
}
