import { describe, expect, test } from "bun:test";
import { deviceName } from "../src/lib/devices.ts";

const mozilla = "Mozilla/5.0";
const webkit = "AppleWebKit/537.36 (KHTML, like Gecko)";
const windows = `${mozilla} (Windows NT 10.0; Win64; x64) ${webkit}`;
const mac = `${mozilla} (Macintosh; Intel Mac OS X 10_15_7)`;
const android = `${mozilla} (Linux; Android 14; Pixel 8) ${webkit}`;
const iphone = `${mozilla} (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)`;
const ipad = iphone.replace("(iPhone; CPU iPhone OS", "(iPad; CPU OS");

const known: Record<string, string> = {
  [`${windows} Chrome/131.0.0.0 Safari/537.36`]: "Chrome on Windows",
  [`${windows} Chrome/131.0.0.0 Safari/537.36 Edg/131.0.0.0`]: "Edge on Windows",
  [`${windows} Chrome/130.0.0.0 Safari/537.36 OPR/115.0.0.0`]: "Opera on Windows",
  [`${mozilla} (Windows NT 10.0; Win64; x64; rv:132.0) Gecko/20100101 Firefox/132.0`]:
    "Firefox on Windows",
  [`${mozilla} (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0`]: "Firefox on Linux",
  [`${mozilla} (X11; CrOS x86_64 14541.0.0) ${webkit} Chrome/131.0.0.0 Safari/537.36`]:
    "Chrome on ChromeOS",
  [`${mozilla} (X11; Linux x86_64) ${webkit} HeadlessChrome/131.0.0.0 Safari/537.36`]:
    "Chrome on Linux",
  [`${mac} AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Safari/605.1.15`]:
    "Safari on macOS",
  [`${mac} ${webkit} Chrome/131.0.0.0 Safari/537.36`]: "Chrome on macOS",
  [`${android} Chrome/131.0.0.0 Mobile Safari/537.36`]: "Chrome on Android",
  [`${android} Chrome/131.0.0.0 Mobile Safari/537.36 EdgA/131.0.0.0`]: "Edge on Android",
  [`${android} SamsungBrowser/27.0 Chrome/125.0.0.0 Mobile Safari/537.36`]:
    "Samsung Internet on Android",
  [`${mozilla} (Android 14; Mobile; rv:132.0) Gecko/132.0 Firefox/132.0`]: "Firefox on Android",
  [`${iphone} Version/18.1 Mobile/15E148 Safari/604.1`]: "Safari on iPhone",
  [`${iphone} CriOS/131.0.6778.73 Mobile/15E148 Safari/604.1`]: "Chrome on iPhone",
  [`${iphone} FxiOS/132.0 Mobile/15E148 Safari/605.1.15`]: "Firefox on iPhone",
  [`${iphone} EdgiOS/131.0.0.0 Version/18.0 Mobile/15E148 Safari/604.1`]: "Edge on iPhone",
  [`${iphone} OPiOS/16.0 Mobile/15E148 Safari/9537.53`]: "Opera on iPhone",
  [`${iphone} Version/18.1 Mobile/15E148 Safari/604.1 OPT/5.3`]: "Opera on iPhone",
  [`${ipad} Version/18.1 Mobile/15E148 Safari/604.1`]: "Safari on iPad",
  [`${iphone} Mobile/15E148`]: "An app on iPhone",
  "curl/8.5.0": "curl",
  "Bun/1.4.4": "A Bun program",
  node: "A Node program",
  undici: "A Node program",
  "python-requests/2.32.3": "A Python program",
  "Go-http-client/2.0": "A Go program",
  "okhttp/4.12.0": "A Java program",
  "my-bot/3": "my-bot/3",
};

describe("a session is named after its program and system", () => {
  for (const [userAgent, name] of Object.entries(known)) {
    test(`«${name}» for ${userAgent.slice(0, 110)}`, () =>
      expect(deviceName(userAgent)).toBe(name));
  }

  test("unknown and missing user agents have a name too", () => {
    expect(deviceName(null)).toBe("Unknown device");
    expect(deviceName("x".repeat(200))).toBe("Unknown program");
  });
});
