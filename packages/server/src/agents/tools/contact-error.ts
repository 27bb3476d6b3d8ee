import {
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  UnauthorizedError,
} from "@modelcontextprotocol/client";
import type { ToolServer } from "@parley/protocol";
import { TooComplex } from "../../security/bounded-json.ts";
import { FetchError } from "../../security/destination.ts";
import { ANSWER_TOO_LATE, ContactFailed } from "./errors.ts";

/** How a contact with a tool server failed, in a sentence that contains nothing that the server sent. */
export interface ContactError {
  readonly status: Exclude<ToolServer["status"], "ready">;
  readonly error: string;
}

const unreachable = (error: string): ContactError => ({ status: "unreachable", error });
const unauthorized = (error: string): ContactError => ({ status: "unauthorized", error });

const TIMEOUT = unreachable(ANSWER_TOO_LATE);
const DEMANDS_TOKEN = unauthorized("The server demands authorization.");

export const contactError = (thrown: unknown): ContactError =>
  causesOf(thrown)
    .map(knownError)
    .find((known) => known !== null) ??
  unreachable("The server cannot be reached, or its answer is not valid.");

function knownError(error: unknown): ContactError | null {
  if (error instanceof ContactFailed) return unreachable(error.message);
  if (error instanceof DOMException && error.name === "TimeoutError") return TIMEOUT;
  if (error instanceof UnauthorizedError) return DEMANDS_TOKEN;
  if (error instanceof FetchError || error instanceof TooComplex) {
    return unreachable(`The request failed: ${error.message}.`);
  }
  if (error instanceof SdkHttpError) {
    const { status } = error.data;
    if (status === 401) return DEMANDS_TOKEN;
    if (status === 403) return unauthorized("The server refuses access.");
    return unreachable(`The server answered with the HTTP status ${status}.`);
  }
  if (error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout) return TIMEOUT;
  if (error instanceof ProtocolError) {
    return unreachable(`The server answered with the error ${error.code}.`);
  }
  return null;
}

const MAX_CAUSES = 4;

/** An error and what caused it: the client wraps errors of its transport. */
function causesOf(error: unknown, most = MAX_CAUSES): unknown[] {
  if (error === undefined || error === null || most === 0) return [];
  return [error, ...causesOf(error instanceof Error ? error.cause : undefined, most - 1)];
}

const MAX_MESSAGE_CHARACTERS = 1000;

/** Why a call failed, for the model. What the server said about it is quoted. */
export function callError(thrown: unknown): string {
  const refusal = causesOf(thrown).find((error) => error instanceof ProtocolError);
  if (!refusal) return contactError(thrown).error;
  return `The server refused the call: ${refusal.message.slice(0, MAX_MESSAGE_CHARACTERS)}`;
}

export const httpStatusOf = (thrown: unknown): number | undefined =>
  thrown instanceof SdkHttpError ? thrown.data.status : undefined;
