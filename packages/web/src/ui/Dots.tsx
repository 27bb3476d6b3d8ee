/** Somebody is writing, or something is running. */
export function Dots() {
  return (
    <span aria-hidden="true" className="inline-flex gap-0.5">
      {["", "[animation-delay:150ms]", "[animation-delay:300ms]"].map((delay) => (
        <span key={delay} className={`size-1 animate-breathe rounded-full bg-accent ${delay}`} />
      ))}
    </span>
  );
}
