// Requests to the administration listener, and the errors that come back. Knows no page.

import { signal } from "@preact/signals";

/** A "no" of the server, or no answer at all (status 0). */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

/** From the session's answer; sent with everything that changes something. */
let csrf = "";
export const setCsrf = (token: string): void => void (csrf = token);

/** Counts answers that say the session is over; the shell watches it. */
export const sessionLost = signal(0);

export interface Call {
  body?: string | Blob;
  json?: unknown;
  headers?: Record<string, string>;
  abort?: AbortSignal;
}

export async function call(method: string, path: string, { body, json, headers = {}, abort }: Call = {}): Promise<Response> {
  const sent: Record<string, string> = { ...headers };
  if (json !== undefined) {
    body = JSON.stringify(json);
    sent["content-type"] = "application/json";
  }
  if (method !== "GET" && method !== "HEAD") sent["x-partita-csrf"] = csrf;
  let answer: Response;
  try {
    answer = await fetch(path, {
      method,
      headers: sent,
      body: body ?? null,
      signal: abort ?? null,
      credentials: "same-origin",
      cache: "no-store",
      redirect: "error",
    });
  } catch (error) {
    if (abort?.aborted) throw error;
    throw new ApiError(0, "NoAnswer", "The server does not answer. Is it still running?");
  }
  if (answer.ok) return answer;
  const refused = await refusal(answer);
  if (answer.status === 401 && refused.code === "NoSession") sessionLost.value += 1;
  throw refused;
}

/** Reads an error as the listener (JSON), tables (OData) or queues and blobs (XML) write it. */
async function refusal(answer: Response): Promise<ApiError> {
  const text = await answer.text().catch(() => "");
  // An answer to HEAD has no text.
  const named = answer.headers.get("x-ms-error-code");
  const fail = (code: string | undefined, message: string | undefined): ApiError =>
    new ApiError(answer.status, code || named || String(answer.status), plain(message) || `The server answers ${answer.status} ${answer.statusText}.`);
  try {
    const document = JSON.parse(text);
    const odata = document["odata.error"];
    if (odata) return fail(odata.code, odata.message?.value);
    return fail(document.error?.code, document.error?.message);
  } catch {
    const part = (name: string): string | undefined => new RegExp(`<(?:m:)?${name}(?: [^>]*)?>([\\s\\S]*?)</`, "i").exec(text)?.[1];
    return fail(part("Code"), part("Message"));
  }
}

/** The service ends its messages with a request id and a time. */
const plain = (message: string | undefined): string => (message ?? "").replace(/\s*RequestId:[\s\S]*$/, "").trim();

export const getJson = async <T>(path: string, abort?: AbortSignal): Promise<T> =>
  (await call("GET", path, abort ? { abort } : {})).json() as Promise<T>;

export const postJson = async <T>(path: string, json: unknown): Promise<T> =>
  (await call("POST", path, { json })).json() as Promise<T>;

/** What to show of any error. */
export function words(error: unknown): string {
  if (error instanceof ApiError) return error.code && !/^\d+$/.test(error.code) ? `${error.code}: ${error.message}` : error.message;
  return error instanceof Error ? error.message : String(error);
}
