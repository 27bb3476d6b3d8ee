import { expect } from "bun:test";
import { Authenticator, addSecondFactor } from "@parley/testkit/authenticator.ts";
import { post } from "@parley/testkit/client.ts";
import type { Page } from "playwright-core";
import decodeQR from "qr/decode.js";
import { expectNoViolations } from "./axe.ts";
import { hasFocus, PHONE, sharedHarness, showsBriefly, test } from "./support.ts";

const harness = sharedHarness();
const PASSWORD = "correct horse battery";

/** What a phone reads from the QR code on the screen. */
async function scan(page: Page): Promise<string> {
  const code = page.getByRole("img", { name: "QR code for your authenticator app" });
  const png = (await code.screenshot({ scale: "css" })).toString("base64");
  const image = await page.evaluate(async (data) => {
    const bytes = Uint8Array.from(atob(data), (each) => each.charCodeAt(0));
    const bitmap = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
    const { width, height } = bitmap;
    const canvas = new OffscreenCanvas(width, height).getContext("2d");
    canvas?.drawImage(bitmap, 0, 0);
    return { width, height, data: [...(canvas?.getImageData(0, 0, width, height).data ?? [])] };
  }, png);
  // The middle of the upper margin.
  const pixel = (3 * image.width + image.width / 2) * 4;
  expect(image.data.slice(pixel, pixel + 3)).toEqual([255, 255, 255]);
  return decodeQR({ ...image, data: Uint8Array.from(image.data) });
}

async function fillSignIn(page: Page, username: string): Promise<void> {
  const toSignIn = page.getByRole("button", { name: "Sign in", exact: true });
  await toSignIn.first().click();
  await page.getByLabel("Username").fill(username);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByLabel("Password").press("Enter");
}

test("a second factor is set up with the QR code, by keyboard", async () => {
  const ada = await harness().person("ada");
  await using visit = await harness().visit(ada, {
    path: "/settings/security",
    colorScheme: "dark",
  });
  const { page } = visit;
  await page.getByRole("button", { name: "Set up" }).click();
  const dialog = page.getByRole("dialog");
  const password = dialog.getByLabel("Your password");
  expect(await hasFocus(password)).toBe(true);
  await expectNoViolations(page);
  await password.fill("not this one");
  await password.press("Enter");
  await dialog.getByText("This is not your password.").waitFor();
  await password.fill(PASSWORD);
  await password.press("Enter");

  const field = dialog.getByLabel("Code", { exact: true });
  await field.waitFor();
  expect(await hasFocus(field)).toBe(true);
  expect(await field.getAttribute("autocomplete")).toBe("one-time-code");
  await expectNoViolations(page);
  const uri = new URL(await scan(page));
  expect(uri.href).toStartWith(`otpauth://totp/Parley:${ada.username}`);
  const secret = uri.searchParams.get("secret") ?? "";
  expect((await dialog.getByRole("code").innerText()).replaceAll(" ", "")).toBe(secret);
  const app = new Authenticator(secret);
  await field.fill("12345");
  await field.press("Enter");
  await dialog.getByText("Six digits, please.").waitFor();
  await field.fill(app.wrong());
  await field.press("Enter");
  await dialog.getByText("This code is wrong, or was used already.").waitFor();
  await field.fill(app.next());
  await field.press("Enter");

  await page.getByRole("dialog", { name: "Your recovery codes" }).waitFor();
  await expectNoViolations(page);
  const codes = await dialog.getByRole("listitem").allInnerTexts();
  expect(codes).toHaveLength(10);
  await showsBriefly(page.getByText("Copied"), () => page.keyboard.press("Enter"));
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(codes.join("\n"));
  await dialog.getByRole("button", { name: "I have stored them" }).click();
  await page.getByText("10 recovery codes are left.").waitFor();
  await expectNoViolations(page);
  const { username } = ada;
  const signedIn = await post(harness().url, "signIn", {
    username,
    password: PASSWORD,
    code: codes[0],
  });
  expect(signedIn.status).toBe(200);
  const isExpected = (problem: string) => problem.includes("403");
  expect(visit.problems().filter((problem) => !isExpected(problem))).toEqual([]);
});

test("signing in asks for the code after the password", async () => {
  const ada = await harness().person("ada");
  const { app } = await addSecondFactor(ada, PASSWORD);
  await using visit = await harness().visit();
  const { page } = visit;
  await fillSignIn(page, ada.username);
  const field = page.getByLabel("Code", { exact: true });
  await field.waitFor();
  expect(await hasFocus(field)).toBe(true);
  expect(await field.getAttribute("autocomplete")).toBe("one-time-code");
  expect(await field.getAttribute("inputmode")).toBe("numeric");
  expect(await page.getByRole("alert").count()).toBe(0);
  await expectNoViolations(page);
  await field.fill(app.wrong());
  await field.press("Enter");
  await page.getByRole("alert").getByText("This code is wrong, or was used already.").waitFor();
  const code = app.next();
  await field.fill(`${code.slice(0, 3)} ${code.slice(3)}`);
  await field.press("Enter");
  await page.waitForFunction(() => localStorage.getItem("parley.token") !== null);
});

test("on a phone a recovery code signs in too", async () => {
  const ada = await harness().person("ada");
  const { recoveryCodes } = await addSecondFactor(ada, PASSWORD);
  await using visit = await harness().visit(null, PHONE);
  const { page } = visit;
  await fillSignIn(page, ada.username);
  await page.getByLabel("Code", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Back" }).tap();
  await fillSignIn(page, ada.username);
  await page.getByRole("button", { name: "Use a recovery code instead" }).tap();
  const field = page.getByLabel("Recovery code");
  expect(await hasFocus(field)).toBe(true);
  await expectNoViolations(page);
  await field.fill(recoveryCodes[3] ?? "");
  await page.getByRole("button", { name: "Sign in" }).tap();
  await page.waitForFunction(() => localStorage.getItem("parley.token") !== null);
  expect(await ada.call("getSecondFactor")).toMatchObject({ recovery_codes_left: 9 });
});

test("recovery codes are renewed, and the second factor is turned off", async () => {
  const ada = await harness().person("ada");
  const { recoveryCodes } = await addSecondFactor(ada, PASSWORD);
  await using visit = await harness().visit(ada, { path: "/settings/security", ...PHONE });
  const { page } = visit;
  const dialog = page.getByRole("dialog");
  const prove = async (code: string, button: string) => {
    await dialog.getByLabel("Your password").fill(PASSWORD);
    await dialog.getByRole("button", { name: "Use a recovery code instead" }).tap();
    await dialog.getByLabel("Recovery code").fill(code);
    await dialog.getByRole("button", { name: button }).tap();
  };
  await page.getByRole("button", { name: "New recovery codes" }).tap();
  await expectNoViolations(page);
  await prove(recoveryCodes[0] ?? "", "Get new codes");
  await page.getByRole("dialog", { name: "Your recovery codes" }).waitFor();
  const [code = ""] = await dialog.getByRole("listitem").allInnerTexts();
  expect(recoveryCodes).not.toContain(code);
  await page.keyboard.press("Escape");
  await page.getByText("10 recovery codes are left.").waitFor();
  await page.getByRole("button", { name: "Turn off" }).tap();
  await prove(code, "Turn off");
  await page.getByRole("button", { name: "Set up" }).waitFor();
  expect(await ada.call("getSecondFactor")).toMatchObject({ enabled: false });
});
