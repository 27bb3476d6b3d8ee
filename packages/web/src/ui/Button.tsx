import type { ButtonHTMLAttributes, ReactNode, Ref } from "react";
import { Icon, type IconName } from "./Icon.tsx";

const looks = {
  primary: "border border-transparent bg-accent-fill text-on-accent hover:bg-accent-press",
  secondary: "border border-line bg-surface text-ink shadow-low hover:bg-hover",
  quiet: "text-ink-2 hover:bg-hover hover:text-ink",
  danger: "border border-line bg-surface text-danger hover:bg-danger-soft",
} as const;

const sizes = {
  small: "h-8 gap-1.5 px-2.5 text-sm pointer-coarse:h-10",
  medium: "h-10 gap-2 px-4 text-base",
} as const;

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  look?: keyof typeof looks;
  size?: keyof typeof sizes;
  icon?: IconName;
  busy?: boolean;
  ref?: Ref<HTMLButtonElement>;
  children: ReactNode;
}

export function Button(props: ButtonProps) {
  const {
    look = "secondary",
    size = "medium",
    icon,
    busy,
    className = "",
    onClick,
    children,
    ...rest
  } = props;
  return (
    <button
      type="button"
      {...rest}
      // A busy button is not disabled, because the browser would take the focus from it.
      aria-disabled={busy || undefined}
      aria-busy={busy || undefined}
      onClick={busy ? (event) => event.preventDefault() : onClick}
      className={`inline-flex shrink-0 items-center justify-center rounded-md font-medium whitespace-nowrap transition-colors disabled:opacity-55 aria-disabled:opacity-55 ${looks[look]} ${sizes[size]} ${className}`}
    >
      {icon && <Icon name={icon} size={size === "small" ? 15 : 17} />}
      {children}
    </button>
  );
}

interface IconButtonProps extends Omit<ButtonHTMLAttributes<HTMLButtonElement>, "children"> {
  icon: IconName;
  /** What it does, in words: its name for screen readers and its tooltip. */
  label: string;
  small?: boolean;
  ref?: Ref<HTMLButtonElement>;
}

export function IconButton({ icon, label, small, className = "", ...rest }: IconButtonProps) {
  return (
    <button
      type="button"
      {...rest}
      aria-label={label}
      title={label}
      className={`inline-flex shrink-0 items-center justify-center rounded-md text-ink-2 transition-colors hover:bg-hover hover:text-ink disabled:opacity-50 ${small ? "size-8" : "size-10"} ${className}`}
    >
      <Icon name={icon} size={small ? 16 : 19} />
    </button>
  );
}
