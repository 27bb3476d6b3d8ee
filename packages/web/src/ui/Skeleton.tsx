/** A placeholder in the shape of content that is loading. */
export function Skeleton({ className = "" }: { className?: string }) {
  return <div aria-hidden="true" className={`animate-sheen rounded-md bg-sunken ${className}`} />;
}
