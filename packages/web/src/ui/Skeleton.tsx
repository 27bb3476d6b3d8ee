/** Stands where something will be, in its shape. */
export function Skeleton({ className = "" }: { className?: string }) {
  return <div aria-hidden="true" className={`animate-sheen rounded-md bg-sunken ${className}`} />;
}
