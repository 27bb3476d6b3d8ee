type Named = readonly [pattern: RegExp, name: string];

/** The first match counts: most browsers also name the browsers they descend from. */
const programs: readonly Named[] = [
  [/\bEdg(?:e|A|iOS)?\//, "Edge"],
  [/\b(?:OPR|OPX|OPT|OPiOS)\/|\bOpera\b/, "Opera"],
  [/\bSamsungBrowser\//, "Samsung Internet"],
  [/\bVivaldi\//, "Vivaldi"],
  [/\bYaBrowser\//, "Yandex Browser"],
  [/\bDuckDuckGo\/|\bDdg\//, "DuckDuckGo"],
  [/\b(?:Firefox|FxiOS)\//, "Firefox"],
  [/\bElectron\//, "A desktop app"],
  [/\b(?:Chrome|Chromium|CriOS|HeadlessChrome)\//, "Chrome"],
  [/\bVersion\/.*\bSafari\//, "Safari"],
  [/\bAppleWebKit\/.*\bMobile\//, "An app"],
  [/^curl\//, "curl"],
  [/^Wget\//i, "Wget"],
  [/^Bun\//, "A Bun program"],
  [/^Deno\//, "A Deno program"],
  [/^(?:node|undici|axios|got)\b/i, "A Node program"],
  [/^(?:python-requests|python-httpx|aiohttp|Python-urllib|Python)\b/i, "A Python program"],
  [/^Go-http-client\//, "A Go program"],
  [/^(?:okhttp|Apache-HttpClient|Java)\b/i, "A Java program"],
  [/^(?:Dart)\//, "A Dart program"],
  [/^PostmanRuntime\//, "Postman"],
];

const systems: readonly Named[] = [
  [/\biPhone\b/, "iPhone"],
  [/\biPad\b/, "iPad"],
  [/\bAndroid\b/, "Android"],
  [/\bCrOS\b/, "ChromeOS"],
  [/\bWindows\b/, "Windows"],
  [/\bMac OS X\b|\bMacintosh\b/, "macOS"],
  [/\bLinux\b|\bX11\b/, "Linux"],
];

/** The common name of a program and its system, by its `User-Agent`. */
export function deviceName(userAgent: string | null): string {
  if (!userAgent) return "Unknown device";
  const find = (list: readonly Named[]) => list.find(([pattern]) => pattern.test(userAgent))?.[1];
  const program = find(programs);
  if (!program) return userAgent.length > 60 ? "Unknown program" : userAgent;
  return [program, find(systems)].filter(Boolean).join(" on ");
}
