// Light or dark: as the system says, or as chosen here.

import { signal } from "@preact/signals";

export type Theme = "auto" | "light" | "dark";
const KEY = "partita-theme";

/** A browser may refuse storage; then the choice lasts as long as the page. */
function attempt<T>(act: () => T): T | undefined {
  try {
    return act();
  } catch {
    return undefined;
  }
}

function stored(): Theme {
  const found = attempt(() => localStorage.getItem(KEY));
  return found === "light" || found === "dark" ? found : "auto";
}

export const theme = signal<Theme>(stored());

theme.subscribe((chosen) => {
  if (chosen === "auto") {
    delete document.documentElement.dataset.theme;
    attempt(() => localStorage.removeItem(KEY));
  } else {
    document.documentElement.dataset.theme = chosen;
    attempt(() => localStorage.setItem(KEY, chosen));
  }
});

export const nextTheme = (): void => void (theme.value = theme.value === "auto" ? "dark" : theme.value === "dark" ? "light" : "auto");
