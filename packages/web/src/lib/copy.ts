/** Puts text on the clipboard, also where the page has not come over a secure connection. */
export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const carrier = document.createElement("textarea");
  carrier.value = text;
  carrier.className = "sr-only";
  document.body.append(carrier);
  carrier.select();
  const copied = document.execCommand("copy");
  carrier.remove();
  if (!copied) throw new Error("This browser does not let the page copy.");
}
