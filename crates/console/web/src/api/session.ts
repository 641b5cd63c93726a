// Who is signed in. The credential itself stays in the server; the page only holds what the session's answer says.

import { signal } from "@preact/signals";
import { ApiError, call, sessionLost, setCsrf } from "./http.ts";

export interface Session {
  /** None if only the administration's token was shown. */
  account: string | null;
  rights: "owner" | "sas" | "admin";
  endpoints: { table?: string; queue?: string; blob?: string };
  csrf: string;
  expires: string;
  /** The caller may see the whole server: status, settings, commands. */
  admin: boolean;
  /** `$partita` and explain are there. */
  extensions: boolean;
}

export type Credential =
  | { connection_string: string }
  | { account: string; key: string }
  | { sas: string; account?: string }
  | { development: true }
  | { admin_token: string };

/** `undefined` until the server has answered once. */
export const session = signal<Session | null | undefined>(undefined);
/** The server offers the development account without a key. */
export const development = signal(false);
/** Why the last session ended, for the sign-in page. */
export const ended = signal("");

function begin(answer: Session): void {
  setCsrf(answer.csrf);
  ended.value = "";
  session.value = answer;
}

export async function resume(): Promise<void> {
  const answer = await fetch("/api/session", { credentials: "same-origin", cache: "no-store" }).catch(() => null);
  if (answer?.ok) return begin((await answer.json()) as Session);
  const said = (await answer?.json().catch(() => null)) as { development?: boolean } | null;
  development.value = said?.development === true;
  if (!answer) ended.value = "The server does not answer. Is it still running?";
  session.value = null;
}

export async function signIn(credential: Credential): Promise<void> {
  begin((await (await call("POST", "/api/session", { json: credential })).json()) as Session);
}

export async function signOut(): Promise<void> {
  await call("DELETE", "/api/session").catch(() => undefined);
  session.value = null;
  await resume();
}

sessionLost.subscribe((times) => {
  if (!times || !session.peek()) return;
  ended.value = "The session has ended. Sign in again to go on.";
  void resume();
});

export const isNotAllowed = (error: unknown): boolean => error instanceof ApiError && (error.status === 403 || error.status === 401);
