// Signing in: a connection string, a key, a SAS, or the development account where the server offers it.

import { useState } from "preact/hooks";
import { words } from "../api/http.ts";
import { type Credential, development, ended, signIn } from "../api/session.ts";
import { Mark } from "../ui/icons.tsx";
import { Button, Field, Notice, Tabs } from "../ui/parts.tsx";

const WAYS = [
  ["connection", "Connection string"],
  ["key", "Key"],
  ["sas", "SAS"],
  ["token", "Admin"],
] as const;
type Way = (typeof WAYS)[number][0];

export function SignIn() {
  const [way, choose] = useState<Way>("connection");
  const [given, give] = useState<Given>({ connection: "", account: "", key: "", sas: "", token: "" });
  const [error, fail] = useState("");
  const [isBusy, busy] = useState(false);
  const set = (name: keyof typeof given) => (event: { currentTarget: HTMLInputElement | HTMLTextAreaElement }) => give({ ...given, [name]: event.currentTarget.value });

  const enter = async (credential: Credential): Promise<void> => {
    busy(true);
    fail("");
    try {
      await signIn(credential);
    } catch (wrong) {
      fail(words(wrong));
      busy(false);
    }
  };
  const submit = (event: Event): void => {
    event.preventDefault();
    const missing = fault(way, given);
    if (missing) return fail(missing);
    void enter(credential(way, given));
  };
  return (
    <main class="sign-in">
      <div class="sign-in-card">
        <div class="sign-in-head">
          <Mark />
          <div>
            <h1>Partita</h1>
            <p>Tables and queues of this server</p>
          </div>
        </div>
        {ended.value && <Notice kind="info">{ended.value}</Notice>}
        {development.value && (
          <div class="sign-in-development">
            <Button kind="primary" icon="arrow" busy={isBusy} onClick={() => void enter({ development: true })}>
              Open the development account
            </Button>
            <p class="hint">devstoreaccount1, on this machine only. No key is needed.</p>
            <div class="or">or sign in to another account</div>
          </div>
        )}
        <Tabs label="How to sign in" tabs={WAYS} chosen={way} choose={(next) => (fail(""), choose(next))} />
        <form onSubmit={submit}>
          {way === "connection" && (
            <Field label="Connection string" hint="As the server prints it at start, or as the portal shows it.">
              {(ids) => <textarea {...ids} class="mono" rows={4} value={given.connection} spellcheck={false} placeholder="AccountName=…;AccountKey=…;TableEndpoint=…" onInput={set("connection")} />}
            </Field>
          )}
          {way === "key" && (
            <>
              <Field label="Account">{(ids) => <input {...ids} class="mono" value={given.account} autocomplete="username" spellcheck={false} onInput={set("account")} />}</Field>
              <Field label="Key" hint="Either of the account's two keys, in Base64.">
                {(ids) => <input {...ids} class="mono" type="password" value={given.key} autocomplete="current-password" onInput={set("key")} />}
              </Field>
            </>
          )}
          {way === "sas" && (
            <>
              <Field label="SAS URL or token" hint="You see what the signature permits, and nothing else.">
                {(ids) => <textarea {...ids} class="mono" rows={4} value={given.sas} spellcheck={false} placeholder="https://…?sv=…&sig=…  or  ?sv=…" onInput={set("sas")} />}
              </Field>
              {!/^https?:/.test(given.sas.trim()) && (
                <Field label="Account" hint="A token alone does not name it.">
                  {(ids) => <input {...ids} class="mono" value={given.account} spellcheck={false} onInput={set("account")} />}
                </Field>
              )}
            </>
          )}
          {way === "token" && (
            <Field label="Administration token" hint="Shows the server, not the data of accounts. Where no token is set, this machine needs none.">
              {(ids) => <input {...ids} class="mono" type="password" value={given.token} autocomplete="current-password" onInput={set("token")} />}
            </Field>
          )}
          {error && <Notice>{error}</Notice>}
          <Button kind={development.value ? "plain" : "primary"} submit busy={isBusy}>
            Sign in
          </Button>
        </form>
        <p class="hint foot">The key goes to this server and stays there. Scripts of this page can't read the session.</p>
      </div>
    </main>
  );
}

type Given = { connection: string; account: string; key: string; sas: string; token: string };

function fault(way: Way, given: Given): string {
  if (way === "connection") return given.connection.includes("=") ? "" : "Paste a connection string: AccountName=…;AccountKey=…";
  if (way === "key") return !given.account.trim() ? "Write the account's name." : given.key ? "" : "Write the account's key.";
  if (way === "token") return given.token ? "" : "Write the administration token.";
  if (!/sig=/.test(given.sas)) return "Paste a SAS: it contains sig=…";
  return /^https?:/.test(given.sas.trim()) || given.account.trim() ? "" : "Write the account's name; a token alone does not contain it.";
}

function credential(way: Way, { connection, account, key, sas, token }: Given): Credential {
  if (way === "connection") return { connection_string: connection.trim() };
  if (way === "key") return { account: account.trim(), key: key.trim() };
  if (way === "token") return { admin_token: token.trim() };
  return /^https?:/.test(sas.trim()) ? { sas: sas.trim() } : { sas: sas.trim(), account: account.trim() };
}
