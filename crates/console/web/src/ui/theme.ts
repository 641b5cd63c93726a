// Light or dark: as the system says, or as chosen here.

import { signal } from "@preact/signals";

export type Theme = "auto" | "light" | "dark";
const KEY = "partita-theme";

function stored(): Theme {
  const found = localStorage.getItem(KEY);
  return found === "light" || found === "dark" ? found : "auto";
}

export const theme = signal<Theme>(stored());

theme.subscribe((chosen) => {
  if (chosen === "auto") {
    delete document.documentElement.dataset.theme;
    localStorage.removeItem(KEY);
  } else {
    document.documentElement.dataset.theme = chosen;
    localStorage.setItem(KEY, chosen);
  }
});

export const nextTheme = (): void => void (theme.value = theme.value === "auto" ? "dark" : theme.value === "dark" ? "light" : "auto");
