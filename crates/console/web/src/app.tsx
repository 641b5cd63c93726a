// The shell: who is signed in, the pages, the switch between light and dark.

import { useEffect } from "preact/hooks";
import { session, signOut } from "./api/session.ts";
import { href, route } from "./lib/router.ts";
import { Access } from "./pages/access.tsx";
import { BlobPage } from "./pages/blob.tsx";
import { Cluster } from "./pages/cluster.tsx";
import { ContainerPage } from "./pages/container.tsx";
import { Containers } from "./pages/containers.tsx";
import { Live } from "./pages/live.tsx";
import { QueuePage } from "./pages/queue.tsx";
import { Queues } from "./pages/queues.tsx";
import { ServerPage } from "./pages/server.tsx";
import { Settings } from "./pages/settings.tsx";
import { SignIn } from "./pages/sign_in.tsx";
import { TablePage } from "./pages/table.tsx";
import { Tables } from "./pages/tables.tsx";
import { DialogHost, Toasts } from "./ui/dialog.tsx";
import { Icon, type IconName, Mark } from "./ui/icons.tsx";
import { Button } from "./ui/parts.tsx";
import { nextTheme, theme } from "./ui/theme.ts";

interface PageLink {
  path: string;
  label: string;
  icon: IconName;
  isShown: () => boolean;
}

const always = (): boolean => true;
const member = (): boolean => !!session.value?.account;
const owner = (): boolean => session.value?.rights === "owner";
const admin = (): boolean => session.value?.admin === true;

const PAGES: PageLink[] = [
  { path: "tables", label: "Tables", icon: "table", isShown: member },
  { path: "queues", label: "Queues", icon: "queue", isShown: () => !!session.value?.endpoints.queue },
  { path: "blobs", label: "Blobs", icon: "blob", isShown: () => !!session.value?.endpoints.blob },
  { path: "live", label: "Live", icon: "live", isShown: always },
  { path: "access", label: "Access", icon: "key", isShown: owner },
  { path: "settings", label: "Settings", icon: "gear", isShown: member },
  { path: "cluster", label: "Cluster", icon: "cluster", isShown: admin },
  { path: "server", label: "Server", icon: "server", isShown: admin },
];

function Page() {
  const [page = session.value?.account ? "tables" : "live", name] = route.value.path;
  switch (page) {
    case "tables":
      return name ? <TablePage key={name} name={name} /> : <Tables />;
    case "queues":
      return name ? <QueuePage key={name} name={name} /> : <Queues />;
    case "blobs": {
      const [blob, snapshot = ""] = [route.value.query.get("blob"), route.value.query.get("snapshot") ?? ""];
      if (!name) return <Containers />;
      return blob ? <BlobPage key={`${name}/${blob}?${snapshot}`} container={name} name={blob} snapshot={snapshot} /> : <ContainerPage key={name} name={name} />;
    }
    case "live":
      return <Live />;
    case "access":
      return <Access />;
    case "settings":
      return <Settings />;
    case "cluster":
      return <Cluster />;
    case "server":
      return <ServerPage />;
    default:
      return <Tables />;
  }
}

export function App() {
  const signed = session.value;
  const page = route.value.path[0] ?? (signed?.account ? "tables" : "live");
  const name = route.value.path[1];
  useEffect(() => {
    const label = PAGES.find(({ path }) => path === page)?.label ?? "Tables";
    document.title = signed ? `${name ?? label} · Partita` : "Partita";
  }, [page, name, signed]);
  if (signed === undefined) return <div class="boot" role="status" aria-label="Loading" />;
  if (signed === null)
    return (
      <>
        <SignIn />
        <Toasts />
      </>
    );
  return (
    <div class="shell">
      <a class="skip" href="#main" onClick={(event) => {
        event.preventDefault();
        document.getElementById("main")?.focus();
      }}>
        To the content
      </a>
      <aside class="side-bar">
        <div class="brand">
          <Mark />
          <span class="brand-name">Partita</span>
        </div>
        <nav aria-label="Pages">
          {PAGES.filter(({ isShown }) => isShown()).map(({ path, label, icon }) => (
            <a key={path} href={href([path])} aria-current={path === page ? "page" : undefined}>
              <Icon name={icon} />
              <span>{label}</span>
            </a>
          ))}
        </nav>
        <Who />
      </aside>
      <main id="main" tabIndex={-1}>
        <Page />
      </main>
      <DialogHost />
      <Toasts />
    </div>
  );
}

const THEMES = { auto: ["auto", "Colours follow the system"], dark: ["moon", "Dark"], light: ["sun", "Light"] } as const;

const RIGHTS = { owner: "account key", sas: "shared access signature", admin: "administration token" };

function Who() {
  const signed = session.value;
  const [icon, label] = THEMES[theme.value];
  return (
    <div class="who">
      <div class="who-name">
        <strong title={signed?.account ?? ""}>{signed?.account ?? "Administrator"}</strong>
        <span>{RIGHTS[signed?.rights ?? "owner"]}</span>
      </div>
      <div class="who-actions">
        <Button kind="quiet" icon={icon} label={`${label}; change`} onClick={nextTheme} />
        <Button kind="quiet" icon="out" label="Sign out" onClick={() => void signOut()} />
      </div>
    </div>
  );
}
