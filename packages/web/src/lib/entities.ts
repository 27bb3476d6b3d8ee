const area = document.createElement("textarea");

/** Stands for the package `entities` in the build. A textarea takes its content as text, never as elements. */
export function decodeHTMLStrict(text: string): string {
  area.innerHTML = text;
  return area.value;
}
